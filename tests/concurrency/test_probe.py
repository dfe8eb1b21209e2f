import os,time
import pytest
from django.db import connections
pytestmark = pytest.mark.django_db(transaction=True)
def test_probe(connection):
    from jobs.invariant import check
    from tests.factories import schedule
    for _ in range(3):
        t=time.monotonic(); print(check("default").breaches, time.monotonic()-t)
    with connections["default"].cursor() as c:
        names=connections["default"].introspection.django_table_names(only_existing=True, include_views=False)
        print(names)
        for _ in range(2):
            schedule()
            t=time.monotonic()
            c.execute("; ".join(f'DELETE FROM "{n}"' for n in names if n.startswith("jobs_") and n!="jobs_crondefinition" and n!="jobs_tenant")+"; DELETE FROM jobs_crondefinition; DELETE FROM jobs_tenant")
            print("delete", time.monotonic()-t)
            t=time.monotonic()
            c.execute("TRUNCATE jobs_queueentry")
            print("truncate entry", time.monotonic()-t)
