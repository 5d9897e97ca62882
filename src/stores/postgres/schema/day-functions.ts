// Number of days for which partitions are created in advance. Usually, dumps and outages of all servers are shorter.
const daysAhead = 3;

// Maximum size of a partition whose rows are counted before a drop, in bytes. Larger counts are estimated.
const countedBytesMax = 64 * 2 ** 20;

// Maximum number of rows in the default partition per drop. A drop takes a few milliseconds.
const sliceMax = 1_000;

// Checks that the caller may insert or delete records, because the functions run with their owner's privileges.
const checkCaller = (right: "INSERT" | "DELETE"): string => `
    IF NOT has_table_privilege(
      CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END, 'deletions', '${right}'
    ) THEN
      RAISE 'permission denied for table deletions' USING ERRCODE = '42501';
    END IF;`;

// Only one process at a time creates and drops partitions. Other processes skip the work instead of waiting.
const lockSchemaOrSkip = "PERFORM FROM plantstore_schema FOR UPDATE SKIP LOCKED";

// The lock timeout is short, because deletions queue behind the lock on the partitioned table.
const definer = `LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '50ms'`;

/** Returns SQL that revokes all privileges on tables except the owner's, in a block that declares `one record`. */
export const closeSql = (tables: string): string => `
    FOR one IN SELECT DISTINCT pg_class.oid::regclass AS name, grantee FROM pg_class CROSS JOIN aclexplode(relacl)
      WHERE pg_class.oid IN (${tables}) AND grantee <> relowner
    LOOP
      EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', one.name,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END);
    END LOOP;`;

/**
 * Creates the functions that create and drop day partitions (UTC). The functions run with their owner's privileges,
 * because servers have privileges on rows only, and keep the current `search_path`.
 *
 * `plantstore_make_days` creates the partitions for the next days, which blocks only readers of the default partition.
 * If a day has begun without a partition, its records stay in the default partition, because attaching a partition
 * could fail a concurrent deletion. Bounds are in UTC and ISO format, because time zone abbreviations are ambiguous.
 * The replica identity is FULL, because retries in doubt update records, which a publication of all tables otherwise
 * forbids.
 *
 * `plantstore_drop_day` drops the oldest day whose upper bound is too old, or else a slice of the expired records in
 * the default partition. Returns the number of records, or NULL when none remain. Partitions in other schemas are never
 * dropped.
 */
export const createDayFunctionsSql: string = `
  CREATE FUNCTION plantstore_make_day(day date) RETURNS void LANGUAGE plpgsql
    SET TimeZone = 'UTC' SET DateStyle = 'ISO' AS $function$
  DECLARE
    one record;
    name text := 'deletions_' || to_char(day, 'YYYYMMDD');
    starts timestamptz := day::timestamp AT TIME ZONE 'UTC';
    ends timestamptz := (day + 1)::timestamp AT TIME ZONE 'UTC';
  BEGIN
    IF to_regclass(name) IS NOT NULL THEN RETURN; END IF;
    PERFORM FROM deletions_other_days WHERE deleted_at >= starts AND deleted_at < ends LIMIT 1;
    IF FOUND THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I (LIKE deletions_by_day INCLUDING DEFAULTS INCLUDING GENERATED)', name);
    EXECUTE format('ALTER TABLE %I REPLICA IDENTITY FULL', name);
    ${closeSql("to_regclass(name)")}
    EXECUTE format('ALTER TABLE deletions_by_day ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', name, starts, ends);
  END $function$;

  CREATE FUNCTION plantstore_make_days() RETURNS void ${definer} AS $function$
  DECLARE day date;
  BEGIN
    ${checkCaller("INSERT")}
    FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date + ahead FROM generate_series(1, ${daysAhead}) AS ahead LOOP
      CONTINUE WHEN to_regclass('deletions_' || to_char(day, 'YYYYMMDD')) IS NOT NULL;
      ${lockSchemaOrSkip};
      IF NOT FOUND THEN RETURN; END IF;
      PERFORM plantstore_make_day(day);
    END LOOP;
  END $function$;

  CREATE FUNCTION plantstore_drop_day(kept interval) RETURNS bigint ${definer} AS $function$
  DECLARE name text; bytes bigint; dropped bigint;
  BEGIN
    ${checkCaller("DELETE")}
    SELECT min(relname) INTO name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
      WHERE inhparent = 'deletions_by_day'::regclass AND pg_table_is_visible(inhrelid)
        AND CASE WHEN relname ~ '^deletions_[0-9]{8}$' THEN
          (to_date(right(relname, 8), 'YYYYMMDD') + 1)::timestamp AT TIME ZONE 'UTC' <= now() - kept END;
    IF name IS NULL THEN
      DELETE FROM deletions_other_days WHERE ctid = ANY(ARRAY(
        SELECT ctid FROM deletions_other_days WHERE deleted_at < now() - kept
        ORDER BY deleted_at LIMIT ${sliceMax} FOR UPDATE SKIP LOCKED));
      GET DIAGNOSTICS dropped = ROW_COUNT;
      RETURN NULLIF(dropped, 0);
    END IF;
    ${lockSchemaOrSkip};
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF to_regclass(name) IS NULL THEN RETURN 0; END IF;
    SELECT pg_relation_size(oid), reltuples INTO bytes, dropped FROM pg_class WHERE oid = to_regclass(name);
    IF bytes <= ${countedBytesMax} THEN EXECUTE format('SELECT count(*) FROM %I', name) INTO dropped; END IF;
    EXECUTE format('DROP TABLE %I', name);
    RETURN greatest(dropped, 0);
  END $function$;`;
