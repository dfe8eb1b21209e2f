"""Who changes limits or sets a bulk operation going has given the password lately: SCHEDULER["password_age"]. A form that
comes too late is not lost: it is sent again with the password and goes on."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import Any

from django import forms
from django.contrib.auth import authenticate
from django.contrib.auth.signals import user_logged_in
from django.db import connections, transaction
from django.dispatch import receiver
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from jobs import clock, operator
from jobs.conf import conf
from jobs.console.origin import person
from jobs.models import ActionResult, OperatorAction

KEPT = "jobs_password_at"
"""In the session: when the password was given, in seconds."""
FIELD = "confirm_password"
VERB = "confirm password"
TRIES, TRIES_IN = 5, timedelta(minutes=15)
"""After so many wrong ones in this time no other is looked at."""
WRONG, TOO_MANY = 403, 429
TOLD = {
    WRONG: "This is not your password. That was recorded.",
    TOO_MANY: "Too many wrong passwords: try again in a quarter of an hour, or log out and in again.",
}
_LOCK = 0x6A6F6277


class PasswordForm(forms.Form):
    confirm_password = forms.CharField(
        label="Password",
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )


def ask(admin: Any, request: HttpRequest, back: str = "") -> HttpResponse | None:
    """The page that asks for the password before what was posted is done; None: go on. `back` leads away from it."""
    if request.method != "POST":
        return None
    given = _take(request)
    if _is_fresh(request):
        return None
    form, status = PasswordForm(None if given is None else {FIELD: given}), 200
    if form.is_bound and form.is_valid():
        status = _check(request, form.cleaned_data[FIELD])
        if status == 200:
            return None
        form.add_error(FIELD, TOLD[status])
    context = {
        **admin.admin_site.each_context(request),
        "title": "Confirm that it is you",
        "opts": admin.opts,
        "media": admin.media,
        "form": form,
        "age": conf().password_age,
        "posted": [
            (name, value)
            for name, values in request.POST.lists()
            for value in values
            if name != "csrfmiddlewaretoken"
        ],
        "back": back or request.get_full_path(),
    }
    headers = {"Retry-After": str(round(TRIES_IN.total_seconds()))} if status == TOO_MANY else {}
    return TemplateResponse(request, "jobs/password.html", context, status=status, headers=headers)


def _take(request: HttpRequest) -> str | None:
    """The password that was sent, which goes no further: what is done next may fail and be reported."""
    posted = request.POST.copy()
    given = posted.pop(FIELD, None)
    request.POST = posted  # type: ignore[assignment]
    return None if given is None else str(given[-1])


def _is_fresh(request: HttpRequest) -> bool:
    age, at = conf().password_age, request.session.get(KEPT)
    if age is None:
        return True
    return isinstance(at, float) and abs(clock.now().timestamp() - at) < age.total_seconds()


def _check(request: HttpRequest, password: str) -> int:
    """One at a time of each user, so that no more are tried than are counted."""
    user: Any = person(request)
    with transaction.atomic(), connections["default"].cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, hashtext(%s))", [_LOCK, user.get_username()])
        if _has_tried(user):
            return TOO_MANY
        found = authenticate(request, username=user.get_username(), password=password)
        if found is not None and found.pk == user.pk:
            request.session[KEPT] = clock.now().timestamp()
            return 200
        skipped = Counter({"wrong password": 1})
        operator.record(user, VERB, {"page": request.path}, skipped=skipped, result=ActionResult.DENIED)
    return WRONG


def _has_tried(user: Any) -> bool:
    """As often as one may."""
    wrong = OperatorAction.objects.filter(
        actor_name=user.get_username()[:150], verb=VERB, result=ActionResult.DENIED
    )
    since = clock.now() - TRIES_IN
    return any(at > since for at in wrong.order_by("-id").values_list("at", flat=True)[TRIES - 1 : TRIES])


@receiver(user_logged_in, dispatch_uid="jobs.console.password")
def _logged_in(sender: Any, request: HttpRequest, **kwargs: Any) -> None:
    """To log in counts, also for those whose password is kept elsewhere."""
    if conf().password_age is not None:
        request.session[KEPT] = clock.now().timestamp()
