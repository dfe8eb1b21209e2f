from __future__ import annotations

import django
import pytest

from jobs.errors import NotConfigured
from scheduler_project.mail import mail_settings

NEW = django.VERSION >= (6, 1)


def test_an_smtp_address_gives_host_login_and_a_timeout() -> None:
    found = mail_settings("smtp+tls://ada:secret@mail.example.org:587")
    if NEW:
        options = found["MAILERS"]["default"]["OPTIONS"]
        assert (options["host"], options["port"], options["username"]) == ("mail.example.org", 587, "ada")
        assert options["use_tls"] is True
        assert options["timeout"] > 0
    else:
        assert (found["EMAIL_HOST"], found["EMAIL_PORT"]) == ("mail.example.org", 587)
        assert found["EMAIL_USE_TLS"] is True
        assert found["EMAIL_TIMEOUT"] > 0


def test_a_folder_and_the_console_are_addresses_too() -> None:
    assert "filebased" in str(mail_settings("filemail:///tmp/outbox"))
    assert "console" in str(mail_settings("consolemail://"))


def test_another_kind_of_address_is_refused_without_showing_it() -> None:
    with pytest.raises(NotConfigured, match="EMAIL_URL") as refused:
        mail_settings("pigeon://ada:secret@loft")
    assert "secret" not in str(refused.value)
