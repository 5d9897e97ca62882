/** Days that are made ahead of today: longer than a dump or an outage of all servers lasts. */
export const daysAhead: number = 3;

/**
 * Bytes of a partition up to which its rows are counted before it is dropped; of a larger one the server's estimate is
 * told.
 */
export const countedBytesMax: number = 64 * 2 ** 20;

/** Rows that are not in the partition of a day are dropped in slices of this many: a few milliseconds. */
export const sliceMax: number = 1_000;

/** The functions run with the rights of the owner. So they do only what the caller might do by itself: add or delete. */
export const checkCaller = (right: "INSERT" | "DELETE"): string => `
    IF NOT has_table_privilege(
      CASE current_setting('role') WHEN 'none' THEN session_user ELSE current_setting('role') END, 'deletions', '${right}'
    ) THEN
      RAISE 'permission denied for table deletions' USING ERRCODE = '42501';
    END IF;`;

/** One process at a time makes and drops days; the others have nothing to wait for. */
export const exclusively: string = "PERFORM FROM plantstore_schema FOR UPDATE SKIP LOCKED";

// Deletions queue behind a lock on the partitioned table, and so wait for this long at most.
const definer = `LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET lock_timeout = '50ms'`;

/**
 * Takes the privileges on tables from all but their owner: those by default, too (ALTER DEFAULT PRIVILEGES). For a block
 * that declares `one record`.
 */
export const closeSql = (tables: string): string => `
    FOR one IN SELECT DISTINCT pg_class.oid::regclass AS name, grantee FROM pg_class CROSS JOIN aclexplode(relacl)
      WHERE pg_class.oid IN (${tables}) AND grantee <> relowner
    LOOP
      EXECUTE format('REVOKE ALL ON %s FROM %s CASCADE', one.name,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END);
    END LOOP;`;

/**
 * Creates the functions that make and drop partitions of a day (UTC), with the rights of their owner: servers have no
 * rights but on rows. The `search_path` is that of the moment.
 *
 * `plantstore_make_days` makes those of the next days. A day that has begun without one, as after a jump of the clock,
 * goes without: its records are in the partition of other days, and dropped row by row. Attaching its partition could
 * refuse a deletion that is on the way there. Attaching one ahead locks no deletion out, only who reads other days.
 * Its bounds are written out, whatever the caller's zone and style: `IST` is the time of India or of Israel. Without a
 * key, a table that a publication of all tables has could not be updated, as the look for a deletion in doubt does.
 *
 * `plantstore_drop_day` drops the oldest day whose records are all older than they are kept, by the bound of its
 * partition, which the server enforces; when there is none, a slice of the old records of other days. It returns how
 * many records, and NULL when there is nothing left to drop. What was moved to another schema is kept.
 */
export const dayFunctionsSql: string = `
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
      ${exclusively};
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
    ${exclusively};
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF to_regclass(name) IS NULL THEN RETURN 0; END IF;
    SELECT pg_relation_size(oid), reltuples INTO bytes, dropped FROM pg_class WHERE oid = to_regclass(name);
    IF bytes <= ${countedBytesMax} THEN EXECUTE format('SELECT count(*) FROM %I', name) INTO dropped; END IF;
    EXECUTE format('DROP TABLE %I', name);
    RETURN greatest(dropped, 0);
  END $function$;`;
