from __future__ import annotations

import datetime

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import jobs.fields
import jobs.links
from jobs.migrations._partitioned import CreatePartitionedModel
from jobs.sql import load


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        CreatePartitionedModel(
            name="Attempt",
            partition_by="due_at",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "job_id", "lease_token", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("job_id", jobs.fields.JobIdField()),
                ("lease_token", models.UUIDField()),
                ("due_at", models.DateTimeField()),
                ("attempt", models.IntegerField()),
                ("process_id", models.BigIntegerField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField()),
                ("error_class", models.CharField(max_length=200)),
                ("message", models.TextField()),
                ("traceback", models.TextField(default="")),
                ("fingerprint", models.CharField(max_length=16, null=True)),
            ],
            options={
                "indexes": [
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True, fields=["finished_at"], name="jobs_attempt_finished"
                    )
                ],
            },
        ),
        CreatePartitionedModel(
            name="CronTick",
            partition_by="slot",
            fields=[
                ("id", jobs.fields.JobIdField(due_field="slot", primary_key=True, serialize=False)),
                ("slot", models.DateTimeField()),
                ("definition_id", models.BigIntegerField()),
                ("revision", models.IntegerField()),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("fired", "fired on time"),
                            ("late", "fired late"),
                            ("merged", "merged into a later run"),
                            ("waiting", "waits for an earlier run to end"),
                            ("skipped", "skipped: overlap, pause or misfire policy"),
                            (
                                "missed",
                                "older than the catch-up window, over its limit or overtaken by an edit",
                            ),
                            ("replaced", "the definition was changed before it came due"),
                            ("backfilled", "run by a backfill"),
                            ("manual", "run by hand"),
                        ],
                        max_length=10,
                    ),
                ),
                ("reason", models.CharField(default="", max_length=200)),
                ("last_slot", models.DateTimeField(null=True)),
                ("slots", models.IntegerField(default=1)),
                ("job_id", models.UUIDField(null=True)),
                ("written_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "indexes": [models.Index(fields=["definition_id", "slot"], name="jobs_crontick_definition")],
            },
        ),
        migrations.CreateModel(
            name="CronRun",
            fields=[
                ("tick_id", models.UUIDField(primary_key=True, serialize=False)),
                ("definition_id", models.BigIntegerField(db_index=True)),
                ("revision", models.IntegerField()),
                ("slot", models.DateTimeField()),
                ("job_id", models.UUIDField(null=True)),
                (
                    "asked",
                    models.BooleanField(
                        default=False, help_text="Somebody asked for it: an edit does not drop it."
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CronRevision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("definition_id", models.BigIntegerField()),
                ("revision", models.IntegerField()),
                ("expression", models.CharField(max_length=512)),
                ("timezone", models.CharField(max_length=64)),
                ("dst", models.CharField(max_length=7)),
                ("every", models.DurationField(null=True)),
                ("anchor_at", models.DateTimeField(null=True)),
                ("run_at", models.DateTimeField(null=True)),
                ("start_at", models.DateTimeField(null=True)),
                ("end_at", models.DateTimeField(null=True)),
                ("enabled", models.BooleanField()),
                ("broken", models.CharField(default="", max_length=500)),
                ("since", models.DateTimeField()),
                ("cursor", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("settled", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("settled", False)), fields=["id"], name="jobs_cronrevision_open"
                    ),
                    models.Index(fields=["until"], name="jobs_cronrevision_until"),
                ],
            },
        ),
        migrations.CreateModel(
            name="OperatorAction",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verb", models.CharField(max_length=40)),
                ("actor_name", models.CharField(max_length=150)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("via", models.CharField(blank=True, default="code", max_length=40)),
                ("address", models.GenericIPAddressField(null=True)),
                ("target", models.JSONField(default=dict)),
                ("before", models.JSONField(default=dict)),
                ("after", models.JSONField(default=dict)),
                ("tenant_id", models.BigIntegerField(null=True)),
                ("operation_id", models.BigIntegerField(null=True)),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                (
                    "result",
                    models.CharField(
                        choices=[
                            ("done", "Done"),
                            ("denied", "denied: a permission was missing"),
                            ("failed", "failed: nothing was changed"),
                        ],
                        default="done",
                        max_length=6,
                    ),
                ),
                ("matched", models.IntegerField(default=0)),
                ("changed", models.IntegerField(default=0)),
                ("requested", models.IntegerField(default=0)),
                ("skipped", models.JSONField(default=dict)),
                (
                    "actor",
                    models.ForeignKey(
                        db_constraint=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(fields=["actor_name", "id"], name="jobs_action_actor"),
                    models.Index(fields=["verb", "id"], name="jobs_action_verb"),
                    models.Index(fields=["at"], name="jobs_action_at"),
                ],
            },
        ),
        migrations.RunSQL(
            load("schema/audit_trigger"),
            "DROP TRIGGER jobs_operatoraction_kept ON jobs_operatoraction;"
            "DROP FUNCTION jobs_operatoraction_kept()",
        ),
        migrations.CreateModel(
            name="Operation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("verb", models.CharField(max_length=20)),
                ("query", models.CharField(max_length=1000)),
                ("arguments", models.JSONField(default=dict)),
                (
                    "scope",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), null=True, size=None
                    ),
                ),
                ("reason", models.CharField(max_length=500)),
                ("author_name", models.CharField(max_length=150)),
                ("approver_name", models.CharField(blank=True, default="", max_length=150)),
                ("action_id", models.BigIntegerField()),
                ("hold_id", models.BigIntegerField(null=True)),
                ("cutoff", models.DateTimeField()),
                ("ceiling", models.IntegerField()),
                ("rate", models.IntegerField()),
                ("probe", models.IntegerField(default=0)),
                ("expected", models.BigIntegerField(null=True)),
                ("expected_how", models.CharField(default="unknown", max_length=9)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("asked", "asked: somebody else approves it first"),
                            ("queued", "Queued"),
                            ("probing", "probing: a few jobs first"),
                            ("running", "Running"),
                            ("paused", "Paused"),
                            ("stopped", "Stopped"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                        ],
                        default="queued",
                        max_length=7,
                    ),
                ),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("cursor", models.UUIDField(null=True)),
                ("chunk_size", models.IntegerField(default=500)),
                ("chunks", models.IntegerField(default=0)),
                ("looked", models.IntegerField(default=0)),
                ("changed", models.IntegerField(default=0)),
                ("requested", models.IntegerField(default=0)),
                ("skipped", models.JSONField(default=dict)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("started_at", models.DateTimeField(null=True)),
                ("next_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("heartbeat_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "undoes",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="undone_by",
                        to="jobs.operation",
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "permissions": (("approve_operation", "Can approve operations of other people"),),
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ("queued", "probing", "running"))),
                        fields=["next_at"],
                        name="jobs_operation_open",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OperationChunk",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("looked", models.IntegerField()),
                (
                    "ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.UUIDField(), default=list, size=None
                    ),
                ),
                (
                    "befores",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                ("skipped", models.JSONField(default=dict)),
                (
                    "operation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pieces",
                        to="jobs.operation",
                    ),
                ),
            ],
            options={
                "default_permissions": (),
                "ordering": ["operation_id", "number"],
                "constraints": [
                    models.UniqueConstraint(fields=("operation", "number"), name="jobs_operationchunk_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=60)),
                ("query", models.CharField(max_length=500)),
                ("shared", models.BooleanField(default=False)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "permissions": (("share_view", "Can share saved views with everybody"),),
                "default_permissions": (),
                "ordering": ["name", "id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("shared", True)), fields=["name"], name="jobs_savedview_shared"
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("owner", "name"), name="jobs_savedview_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Preference",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("zone", models.CharField(blank=True, default="", max_length=64)),
                ("refresh", models.CharField(blank=True, default="", max_length=8)),
                ("density", models.CharField(blank=True, default="", max_length=11)),
                ("keys", models.CharField(blank=True, default="", max_length=3)),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Triage",
            fields=[
                ("fingerprint", models.CharField(max_length=16, primary_key=True, serialize=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("known", "known: somebody takes care of it"),
                            ("ignored", "ignored: it does not matter"),
                            ("mended", "mended: should it fail again, it is told as back"),
                        ],
                        max_length=7,
                    ),
                ),
                ("until", models.DateTimeField(null=True)),
                ("owner", models.CharField(blank=True, default="", max_length=150)),
                ("note", models.CharField(blank=True, default="", max_length=500)),
                ("by", models.CharField(blank=True, default="", max_length=150)),
                ("at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="Process",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("dispatcher", "Dispatcher"),
                            ("supervisor", "Supervisor"),
                            ("worker", "Worker"),
                        ],
                        max_length=10,
                    ),
                ),
                ("host", models.CharField(max_length=255)),
                ("pid", models.IntegerField()),
                ("parent_id", models.BigIntegerField(null=True)),
                (
                    "queues",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                (
                    "types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=100), default=list, size=None
                    ),
                ),
                ("started_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("lease_expires_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "verbose_name_plural": "processes",
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "indexes": [
                    models.Index(
                        condition=models.Q(("ended_at__isnull", True)),
                        fields=["lease_expires_at"],
                        name="jobs_process_live",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Queue",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "rate",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most starts a second, minute or hour; 0: none may run; empty: unlimited.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "rate_per",
                    models.CharField(
                        choices=[("second", "Second"), ("minute", "Minute"), ("hour", "Hour")],
                        db_default="second",
                        default="second",
                        max_length=6,
                    ),
                ),
                (
                    "burst",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Starts that may be saved up while idle; empty: those of one second, at least one.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                (
                    "max_running",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most jobs at once; 0: none may run; empty: unlimited.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "noisy_share",
                    models.FloatField(
                        blank=True,
                        help_text="Share of a worker's threads, 0.01 to 1, that one tenant may hold while others wait; empty: as in the settings; 1: all of them.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("max_running__gte", 0), ("max_running__lte", 1000000)),
                        name="jobs_queue_max_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("noisy_share__gte", 0.01), ("noisy_share__lte", 1)),
                        name="jobs_queue_noisy_share",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate__gte", 0), ("rate__lte", 1000000)), name="jobs_queue_rate"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate_per__in", ["second", "minute", "hour"])),
                        name="jobs_queue_rate_per",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst__isnull", True),
                            models.Q(("burst__gte", 1), ("burst__lte", 1000000), ("rate__isnull", False)),
                            _connector="OR",
                        ),
                        name="jobs_queue_burst",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Tenant",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "rate",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most starts a second, minute or hour; 0: none may run; empty: unlimited.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "rate_per",
                    models.CharField(
                        choices=[("second", "Second"), ("minute", "Minute"), ("hour", "Hour")],
                        db_default="second",
                        default="second",
                        max_length=6,
                    ),
                ),
                (
                    "burst",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Starts that may be saved up while idle; empty: those of one second, at least one.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                (
                    "slug",
                    models.CharField(
                        help_text="As schedule(tenant=…) gives it.",
                        max_length=100,
                        unique=True,
                        verbose_name="name",
                    ),
                ),
                (
                    "weight",
                    models.PositiveSmallIntegerField(
                        default=1,
                        help_text="Share of the claims while others wait too.",
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000),
                        ],
                    ),
                ),
                (
                    "max_running",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Most jobs at once; 0: none may run; empty: unlimited.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "temporary_max_running",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Instead of max running until the time below; 0: none may run; empty: unlimited.",
                        null=True,
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "temporary_until",
                    models.DateTimeField(
                        blank=True,
                        help_text="When the temporary limit ends; empty: there is none.",
                        null=True,
                    ),
                ),
                (
                    "noisy_exempt",
                    models.BooleanField(
                        db_default=False,
                        default=False,
                        help_text="It may hold more than the noisy share of a worker's threads while others wait.",
                        verbose_name="may fill the workers",
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                ("retired_at", models.DateTimeField(editable=False, null=True)),
            ],
            options={
                "ordering": ["slug"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("weight__gte", 1), ("weight__lte", 1000)),
                        name="jobs_tenant_weight",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("max_running__gte", 0), ("max_running__lte", 1000000)),
                        name="jobs_tenant_max_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("temporary_max_running__isnull", True),
                            models.Q(
                                ("temporary_max_running__gte", 0),
                                ("temporary_max_running__lte", 1000000),
                                ("temporary_until__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="jobs_tenant_temporary",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate__gte", 0), ("rate__lte", 1000000)), name="jobs_tenant_rate"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("rate_per__in", ["second", "minute", "hour"])),
                        name="jobs_tenant_rate_per",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("burst__isnull", True),
                            models.Q(("burst__gte", 1), ("burst__lte", 1000000), ("rate__isnull", False)),
                            _connector="OR",
                        ),
                        name="jobs_tenant_burst",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TenantQueueLimit",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("queue", models.CharField(max_length=100)),
                (
                    "max_running",
                    models.PositiveIntegerField(
                        help_text="Most jobs at once; 0: none may run.",
                        validators=[django.core.validators.MaxValueValidator(1000000)],
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="queue_limits",
                        to="jobs.tenant",
                    ),
                ),
            ],
            options={
                "ordering": ["queue", "tenant_id"],
                "constraints": [
                    models.UniqueConstraint(fields=("queue", "tenant"), name="jobs_tenantqueuelimit_once"),
                    models.CheckConstraint(
                        condition=models.Q(("max_running__gte", 0), ("max_running__lte", 1000000)),
                        name="jobs_tenantqueuelimit_max_running",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("queue", ""), _negated=True), name="jobs_tenantqueuelimit_queue"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="RateBucket",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("tenant", "Tenant"), ("queue", "Queue"), ("hold", "Hold")], max_length=6
                    ),
                ),
                ("key", models.CharField(max_length=100)),
                ("tokens", models.FloatField()),
                ("refilled_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("scope", "key"), name="jobs_ratebucket_once"),
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["tenant", "queue", "hold"])),
                        name="jobs_ratebucket_scope",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("tokens__gte", 0), ("tokens__lte", 1000000)),
                        name="jobs_ratebucket_tokens",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Hold",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("all", "everything"),
                            ("tenant", "a tenant"),
                            ("queue", "a queue"),
                            ("type", "a job type"),
                            ("group", "a group"),
                        ],
                        max_length=6,
                    ),
                ),
                (
                    "key",
                    models.CharField(
                        blank=True,
                        default="",
                        help_text="The tenant's slug, or the name of queue, type or group.",
                        max_length=100,
                    ),
                ),
                ("reason", models.CharField(blank=True, default="", max_length=500)),
                ("by", models.CharField(blank=True, default="", max_length=150)),
                ("since", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("until", models.DateTimeField(blank=True, null=True)),
                (
                    "drain",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Starts per second once it has ended, until the backlog is gone; empty: full speed.",
                        null=True,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(1000000),
                        ],
                    ),
                ),
                ("drained_at", models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("drained_at__isnull", True)),
                        fields=["scope", "key"],
                        name="jobs_hold_open",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("scope__in", ["all", "tenant", "queue", "type", "group"])),
                        name="jobs_hold_scope",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("key", ""), ("scope", "all")),
                            models.Q(
                                models.Q(("scope", "all"), _negated=True),
                                models.Q(("key", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="jobs_hold_key",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until__isnull", True), ("until__gte", models.F("since")), _connector="OR"
                        ),
                        name="jobs_hold_window",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("drain__gte", 1), ("drain__lte", 1000000)), name="jobs_hold_drain"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TenantMember",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="jobs.tenant",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "tenant"), name="jobs_tenantmember_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="Rollup",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("all", "All"), ("queue", "Queue"), ("type", "Type"), ("tenant", "Tenant")],
                        max_length=6,
                    ),
                ),
                ("step", models.SmallIntegerField(choices=[(60, "Minute"), (3600, "Hour")])),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("at", models.DateTimeField()),
                ("due", models.IntegerField(default=0)),
                ("completed", models.IntegerField(default=0)),
                ("failed", models.IntegerField(default=0)),
                ("cancelled", models.IntegerField(default=0)),
                ("errors", models.IntegerField(default=0)),
                (
                    "late",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                (
                    "ran",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                ("ran_seconds", models.FloatField(default=0.0)),
            ],
            options={
                "default_permissions": (),
                "indexes": [models.Index(fields=["step", "at", "kind"], name="jobs_rollup_at")],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "step", "name", "at"), name="jobs_rollup_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="RollupProgress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("first", models.DateTimeField()),
                ("second", models.DateTimeField()),
                ("hour", models.DateTimeField()),
                ("counted_at", models.DateTimeField(null=True)),
                ("foreseen_at", models.DateTimeField(null=True)),
            ],
            options={"default_permissions": ()},
        ),
        migrations.CreateModel(
            name="Backlog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("all", "All"), ("queue", "Queue"), ("type", "Type"), ("tenant", "Tenant")],
                        max_length=6,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("waiting", models.IntegerField(default=0)),
                ("oldest", models.DateTimeField(null=True)),
                ("running", models.IntegerField(default=0)),
                ("retrying", models.IntegerField(default=0)),
                ("later", models.IntegerField(default=0)),
                ("parked", models.IntegerField(default=0)),
            ],
            options={
                "default_permissions": (),
                "constraints": [models.UniqueConstraint(fields=("kind", "name"), name="jobs_backlog_once")],
            },
        ),
        migrations.CreateModel(
            name="Forecast",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[("all", "All"), ("queue", "Queue"), ("type", "Type"), ("tenant", "Tenant")],
                        max_length=6,
                    ),
                ),
                ("name", models.CharField(blank=True, default="", max_length=100)),
                ("at", models.DateTimeField()),
                ("due", models.IntegerField()),
            ],
            options={
                "default_permissions": (),
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "name", "at"), name="jobs_forecast_once")
                ],
            },
        ),
        CreatePartitionedModel(
            name="Job",
            partition_by="due_at",
            fields=[
                ("id", jobs.fields.JobIdField(primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                ("job_type", models.CharField(max_length=100)),
                ("queue", models.CharField(max_length=100)),
                ("priority", models.SmallIntegerField(default=0)),
                ("payload", models.JSONField(default=dict)),
                ("group", models.CharField(max_length=100, null=True)),
                ("max_attempts", models.IntegerField()),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("cron_id", models.BigIntegerField(null=True)),
                ("slot", models.DateTimeField(null=True)),
                ("unique_key", models.CharField(max_length=200, null=True)),
                ("unique_for", models.DurationField(null=True)),
                ("concurrency_key", models.CharField(max_length=200, null=True)),
                (
                    "tenant",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="jobs.tenant",
                    ),
                ),
            ],
            options={
                "permissions": (
                    ("retry_job", "Can retry jobs"),
                    ("cancel_job", "Can cancel jobs"),
                    ("reschedule_job", "Can move jobs to another time"),
                    ("prioritize_job", "Can change the priority of jobs"),
                    ("move_job", "Can move jobs to another queue"),
                    ("bulk_job", "Can start operations on up to 1,000 jobs"),
                    ("bulk_many", "Can start operations on up to 100,000 jobs"),
                    ("bulk_any", "Can start operations on any number of jobs"),
                    ("every_tenant", "Sees the jobs of every tenant"),
                    ("reveal_payload", "Can see the values in payloads and results"),
                    ("export_job", "Can export lists of jobs and of the audit"),
                    ("triage_error", "Can sort errors into known, ignored and mended"),
                    ("mark_deploy", "Can mark deploys on the charts"),
                    ("view_metrics", "Can read the metrics"),
                    ("view_health", "Can take a support bundle"),
                ),
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="CronDefinition",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("expression", models.CharField(blank=True, db_default="", default="", max_length=512)),
                ("timezone", models.CharField(default="UTC", max_length=64)),
                (
                    "dst",
                    models.CharField(
                        choices=[("cron", "cron"), ("skip", "skip"), ("literal", "literal")],
                        default="cron",
                        max_length=7,
                    ),
                ),
                ("every", models.DurationField(blank=True, null=True)),
                ("anchor_at", models.DateTimeField(blank=True, null=True)),
                ("run_at", models.DateTimeField(blank=True, null=True)),
                ("job_type", models.CharField(max_length=100)),
                ("payload", models.JSONField(blank=True, default=dict)),
                ("queue", models.CharField(blank=True, max_length=100, null=True)),
                ("priority", models.SmallIntegerField(default=0)),
                ("max_attempts", models.PositiveIntegerField(blank=True, null=True)),
                ("enabled", models.BooleanField(default=True)),
                ("note", models.CharField(blank=True, db_default="", default="", max_length=500)),
                ("start_at", models.DateTimeField(blank=True, null=True)),
                ("end_at", models.DateTimeField(blank=True, null=True)),
                ("max_runs", models.PositiveIntegerField(blank=True, null=True)),
                (
                    "jitter",
                    models.DurationField(db_default=datetime.timedelta(0), default=datetime.timedelta(0)),
                ),
                (
                    "spread",
                    models.DurationField(db_default=datetime.timedelta(0), default=datetime.timedelta(0)),
                ),
                (
                    "misfire",
                    models.CharField(
                        choices=[
                            ("run_once", "one run, for the latest missed slot"),
                            ("run_all", "one run per missed slot, oldest first, up to the limit"),
                            ("skip", "none; wait for the next slot"),
                        ],
                        default="run_once",
                        max_length=8,
                    ),
                ),
                ("misfire_grace", models.DurationField(default=datetime.timedelta(seconds=60))),
                ("catchup_window", models.DurationField(default=datetime.timedelta(days=1))),
                ("catchup_limit", models.PositiveIntegerField(default=100)),
                (
                    "overlap",
                    models.CharField(
                        choices=[
                            ("allow_all", "start at once"),
                            ("skip", "skip the slot"),
                            ("buffer_one", "keep one start waiting, the first"),
                            ("buffer_all", "keep all starts waiting, in order, up to 100"),
                            ("cancel_other", "ask the earlier run to stop; start when it has ended"),
                        ],
                        default="allow_all",
                        max_length=12,
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        blank=True, default="", help_text="Where code declared it.", max_length=100
                    ),
                ),
                (
                    "declared",
                    models.JSONField(
                        editable=False,
                        help_text="What code declared last: an edit here stays until the code changes.",
                        null=True,
                    ),
                ),
                ("next_slot", models.DateTimeField(editable=False, null=True)),
                (
                    "last_slot",
                    models.DateTimeField(
                        editable=False,
                        help_text="The cursor: the last slot considered; never moves backwards.",
                        null=True,
                    ),
                ),
                (
                    "look_at",
                    models.DateTimeField(
                        db_default=datetime.datetime(1970, 1, 1, 0, 0, tzinfo=datetime.UTC),
                        editable=False,
                        help_text="When a ticker looks at it next; null: never.",
                        null=True,
                    ),
                ),
                ("runs", models.IntegerField(db_default=0, default=0, editable=False)),
                ("revision", models.IntegerField(default=1, editable=False)),
                (
                    "revised_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        help_text="The present rule counts from here.",
                    ),
                ),
                ("tz_version", models.CharField(db_default="", default="", editable=False, max_length=20)),
                ("broken", models.CharField(blank=True, default="", editable=False, max_length=500)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), editable=False
                    ),
                ),
                (
                    "tenant",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT, related_name="+", to="jobs.tenant"
                    ),
                ),
            ],
        ),
        CreatePartitionedModel(
            name="Timer",
            partition_by="due_at",
            fields=[
                ("job_id", jobs.fields.JobIdField(primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                ("tenant_id", models.BigIntegerField()),
                ("queue", models.CharField(max_length=100)),
                ("job_type", models.CharField(max_length=100)),
                ("priority", models.SmallIntegerField()),
                ("max_attempts", models.IntegerField()),
                ("group", models.CharField(max_length=100, null=True)),
                ("concurrency_key", models.CharField(max_length=200, null=True)),
                (
                    "job",
                    jobs.links.JobLink(
                        from_fields=["job_id", "due_at"],
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="timer",
                        to="jobs.job",
                        to_fields=["id", "due_at"],
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="KeyLimit",
            fields=[
                ("job_type", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("most", models.IntegerField()),
                ("changed_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="UniqueKey",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("tenant_id", models.BigIntegerField()),
                ("job_type", models.CharField(max_length=100)),
                ("key", models.CharField(max_length=200)),
                ("job_id", models.UUIDField()),
                (
                    "expires_at",
                    models.DateTimeField(help_text="Null: held until the job has ended.", null=True),
                ),
            ],
            options={
                "indexes": [
                    models.Index(fields=["job_id"], name="jobs_uniquekey_job"),
                    models.Index(
                        condition=models.Q(("expires_at__isnull", False)),
                        fields=["expires_at"],
                        name="jobs_uniquekey_expires",
                    ),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("tenant_id", "job_type", "key"), name="jobs_uniquekey_once"
                    )
                ],
            },
        ),
        CreatePartitionedModel(
            name="Outcome",
            partition_by="due_at",
            fields=[
                ("job_id", jobs.fields.JobIdField(primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                        ],
                        max_length=9,
                    ),
                ),
                ("attempt", models.IntegerField()),
                ("max_attempts", models.IntegerField()),
                ("crashes", models.IntegerField(default=0)),
                ("lease_token", models.UUIDField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("finished_at", models.DateTimeField()),
                ("process_id", models.BigIntegerField(null=True)),
                ("error", models.CharField(max_length=500, null=True)),
                ("error_fingerprint", models.CharField(max_length=16, null=True)),
                ("action_id", models.BigIntegerField(null=True)),
                ("result", models.JSONField(null=True)),
                (
                    "job",
                    jobs.links.JobLink(
                        from_fields=["job_id", "due_at"],
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="outcome",
                        to="jobs.job",
                        to_fields=["id", "due_at"],
                    ),
                ),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "failed")),
                        fields=["finished_at"],
                        name="jobs_outcome_failed",
                    ),
                    models.Index(
                        condition=models.Q(("state__in", ("failed", "cancelled"))),
                        fields=["state", "due_at", "job_id"],
                        name="jobs_outcome_unhappy",
                    ),
                    django.contrib.postgres.indexes.BrinIndex(
                        autosummarize=True, fields=["finished_at"], name="jobs_outcome_finished"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="QueueEntry",
            fields=[
                ("job_id", jobs.fields.JobIdField(primary_key=True, serialize=False)),
                ("due_at", models.DateTimeField()),
                ("run_at", models.DateTimeField()),
                ("tenant_id", models.BigIntegerField()),
                ("queue", models.CharField(max_length=100)),
                ("job_type", models.CharField(max_length=100)),
                ("priority", models.SmallIntegerField()),
                ("attempt", models.IntegerField(default=0)),
                ("max_attempts", models.IntegerField()),
                ("crashes", models.IntegerField(default=0)),
                ("enqueued_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("process_id", models.BigIntegerField(null=True)),
                ("lease_token", models.UUIDField(null=True)),
                ("claim_no", models.BigIntegerField(null=True)),
                ("claimed_at", models.DateTimeField(null=True)),
                ("cancel_requested", models.BooleanField(default=False)),
                (
                    "parked",
                    models.CharField(
                        choices=[
                            ("type", "no live worker knows its type"),
                            ("key", "others with its concurrency key run"),
                            ("hold", "its type or group is held"),
                        ],
                        max_length=4,
                        null=True,
                    ),
                ),
                (
                    "waits",
                    models.CharField(
                        choices=[("retry", "Retry"), ("snooze", "Snooze"), ("reschedule", "Reschedule")],
                        max_length=10,
                        null=True,
                    ),
                ),
                ("group", models.CharField(max_length=100, null=True)),
                ("concurrency_key", models.CharField(max_length=200, null=True)),
                ("action_id", models.BigIntegerField(null=True)),
                (
                    "job",
                    jobs.links.JobLink(
                        from_fields=["job_id", "due_at"],
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="entry",
                        to="jobs.job",
                        to_fields=["id", "due_at"],
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "queue entries",
                "indexes": [
                    models.Index(
                        models.F("queue"),
                        models.F("tenant_id"),
                        models.OrderBy(models.F("priority"), descending=True),
                        models.F("run_at"),
                        models.F("job_id"),
                        condition=models.Q(("lease_token__isnull", True), ("parked__isnull", True)),
                        name="jobs_queueentry_ready",
                    ),
                    models.Index(
                        condition=models.Q(("parked__isnull", True), ("process_id__isnull", True)),
                        fields=["queue", "run_at"],
                        name="jobs_queueentry_next",
                    ),
                    models.Index(
                        condition=models.Q(("lease_token__isnull", False)),
                        fields=["tenant_id", "claim_no"],
                        name="jobs_queueentry_tenant",
                    ),
                    models.Index(
                        condition=models.Q(("process_id__isnull", False)),
                        fields=["queue", "claim_no"],
                        name="jobs_queueentry_queue",
                    ),
                    models.Index(
                        condition=models.Q(("parked", "type")),
                        fields=["job_type"],
                        name="jobs_queueentry_parked",
                    ),
                    models.Index(
                        models.OrderBy(models.F("priority"), descending=True),
                        models.F("run_at"),
                        models.F("job_id"),
                        condition=models.Q(("parked", "hold")),
                        name="jobs_queueentry_held",
                    ),
                    models.Index(
                        condition=models.Q(("concurrency_key__isnull", False), ("parked__isnull", True)),
                        fields=["tenant_id", "concurrency_key"],
                        name="jobs_queueentry_key",
                    ),
                    models.Index(
                        models.F("tenant_id"),
                        models.F("concurrency_key"),
                        models.OrderBy(models.F("priority"), descending=True),
                        models.F("run_at"),
                        models.F("job_id"),
                        condition=models.Q(("lease_token__isnull", True), ("parked", "key")),
                        name="jobs_queueentry_keyline",
                    ),
                    models.Index(
                        condition=models.Q(("parked", "key"), ("process_id__isnull", True)),
                        fields=["run_at"],
                        name="jobs_queueentry_keydue",
                    ),
                    models.Index(
                        condition=models.Q(("crashes__gte", 2), ("lease_token__isnull", True)),
                        fields=["queue"],
                        name="jobs_queueentry_suspect",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("lease_token__isnull", True), ("process_id__isnull", True)),
                            models.Q(("lease_token__isnull", False), ("process_id__isnull", False)),
                            _connector="OR",
                        ),
                        name="jobs_queueentry_leased",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__gte", -100), ("priority__lte", 100)),
                        name="jobs_queueentry_priority",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("parked", "key"), _negated=True),
                            ("concurrency_key__isnull", False),
                            _connector="OR",
                        ),
                        name="jobs_queueentry_keyed",
                    ),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["tenant", "due_at"], name="jobs_job_tenant"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["job_type", "due_at"], name="jobs_job_type"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("group__isnull", False)),
                fields=["group", "due_at"],
                name="jobs_job_group",
            ),
        ),
        migrations.AddIndex(
            model_name="crondefinition",
            index=models.Index(
                condition=models.Q(("broken", ""), ("enabled", True)),
                fields=["look_at"],
                name="jobs_crondefinition_due",
            ),
        ),
        migrations.AddConstraint(
            model_name="crondefinition",
            constraint=models.UniqueConstraint(fields=("tenant", "name"), name="jobs_crondefinition_name"),
        ),
        migrations.AddConstraint(
            model_name="crondefinition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("end_at__isnull", True),
                    ("start_at__isnull", True),
                    ("end_at__gt", models.F("start_at")),
                    _connector="OR",
                ),
                name="jobs_crondefinition_window",
            ),
        ),
        migrations.AddConstraint(
            model_name="crondefinition",
            constraint=models.CheckConstraint(
                condition=models.Q(("catchup_limit__gte", 1), ("catchup_limit__lte", 1000)),
                name="jobs_crondefinition_limit",
            ),
        ),
        migrations.AddConstraint(
            model_name="crondefinition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        models.Q(("expression", ""), _negated=True),
                        ("every__isnull", True),
                        ("run_at__isnull", True),
                    ),
                    models.Q(("every__isnull", False), ("expression", ""), ("run_at__isnull", True)),
                    models.Q(("every__isnull", True), ("expression", ""), ("run_at__isnull", False)),
                    _connector="OR",
                ),
                name="jobs_crondefinition_rule",
            ),
        ),
        migrations.AddConstraint(
            model_name="crondefinition",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("jitter__gte", datetime.timedelta(0)),
                    ("jitter__lte", datetime.timedelta(days=1)),
                    ("spread__gte", datetime.timedelta(0)),
                    ("spread__lte", datetime.timedelta(days=1)),
                ),
                name="jobs_crondefinition_delay",
            ),
        ),
        migrations.RunSQL(
            load("schema/job_id_check"), "ALTER TABLE jobs_job DROP CONSTRAINT jobs_job_id_due_at"
        ),
        migrations.RunSQL(load("schema/storage"), migrations.RunSQL.noop),
        migrations.RunSQL(load("schema/times_check"), migrations.RunSQL.noop),
        migrations.RunSQL("CREATE SEQUENCE jobs_claim_no", "DROP SEQUENCE jobs_claim_no"),
        migrations.RunSQL(load("schema/state_view"), "DROP VIEW jobs_job_state"),
        migrations.RunSQL(
            load("schema/cron_trigger"),
            "DROP TRIGGER jobs_crondefinition_changed ON jobs_crondefinition;"
            "DROP FUNCTION jobs_crondefinition_changed(); DROP FUNCTION jobs_crondefinition_withdraw(bigint, timestamptz)",
        ),
    ]
