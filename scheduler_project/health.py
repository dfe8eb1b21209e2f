"""What a load balancer asks: can this process serve, that is, reach its database?"""

from __future__ import annotations

import logging

from django.db import Error, connection
from django.http import HttpRequest, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

logger = logging.getLogger("jobs.health")


@never_cache
@require_safe
def healthz(request: HttpRequest) -> JsonResponse:
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
    except Error as error:
        # Why goes to the log: the answer is public and the message may name hosts and users.
        logger.warning("database unreachable", extra={"error": str(error).strip()})
        return JsonResponse({"status": "unavailable"}, status=503)
    return JsonResponse({"status": "ok"})
