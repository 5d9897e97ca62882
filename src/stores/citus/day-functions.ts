import {
  checkCaller,
  closeSql,
  countedBytesMax,
  daysAhead,
  lockSchemaOrSkip,
  sliceMax,
} from "../postgres/schema/day-functions.ts";

// The approximate partition count. Few, because each has 32 tables on workers by default, and locks on all nodes.
const partitions = 12;

// The partition that contains a day, according to its bound.
const partitionNameSql = (day: string): string => `
      SELECT FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
      WHERE inhparent = 'deletions'::regclass AND pg_get_expr(relpartbound, inhrelid) LIKE '%' || quote_literal(${day}) || '%'`;

// Runs on one shard, which commits separately. Concurrent processes drop different records.
const dropSliceSql = `$$ WITH dropped AS (
          DELETE FROM %%1$s WHERE ctid = ANY(ARRAY(
            SELECT ctid FROM %%1$s WHERE deleted_at < now() - %L::interval
            ORDER BY deleted_at LIMIT ${sliceMax} FOR UPDATE SKIP LOCKED))
          RETURNING 1)
        SELECT count(*) FROM dropped $$`;

const definer = `LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT SET DateStyle = 'ISO'`;

/**
 * Creates the functions that create and drop partitions on Citus. They work as on a single server, except that a
 * partition contains several days if records are kept for long. The partition key is the column `day`, because Citus
 * supports only one partition level. The caller sets the lock timeout, because a function's setting does not apply to
 * workers.
 *
 * Records outside day partitions are dropped on each shard separately. A statement for all shards takes three times as
 * long.
 *
 * The worker sets a record's day from its own clock. Each partition's constraint refuses records with a later
 * `deleted_at`, so that a partition whose days have all expired contains only expired records.
 */
export const createDayFunctionsSql: string = `
  CREATE FUNCTION plantstore_make_day(first date, count integer) RETURNS void ${definer} AS $function$
  DECLARE one record; name text := 'deletions_' || to_char(first, 'YYYYMMDD'); days date[];
  BEGIN
    days := ARRAY(SELECT DISTINCT day FROM deletions_other_days);
    days := ARRAY(SELECT day FROM (SELECT first + ahead AS day FROM generate_series(0, count - 1) AS ahead) AS ahead
      WHERE day <> ALL(days) AND NOT EXISTS (${partitionNameSql("day::text")}));
    IF days[1] IS DISTINCT FROM first THEN RETURN; END IF;
    EXECUTE format('CREATE TABLE %I (LIKE deletions INCLUDING DEFAULTS INCLUDING GENERATED,
      PRIMARY KEY (plant_id, seq), CHECK (deleted_at < %L))',
      name, (days[cardinality(days)] + 1)::timestamp AT TIME ZONE 'UTC');
    EXECUTE format('CREATE INDEX ON %I (deleted_at)', name);
    ${closeSql("to_regclass(name)")}
    PERFORM create_distributed_table(name, 'plant_id', colocate_with => 'plants');
    EXECUTE format('ALTER TABLE deletions ATTACH PARTITION %I FOR VALUES IN (%s)', name,
      (SELECT string_agg(quote_literal(day), ', ') FROM unnest(days) AS day));
  END $function$;

  CREATE FUNCTION plantstore_make_days(kept interval) RETURNS void ${definer} AS $function$
  DECLARE day date;
  BEGIN
    ${checkCaller("INSERT")}
    FOR day IN SELECT (now() AT TIME ZONE 'UTC')::date + ahead FROM generate_series(1, ${daysAhead}) AS ahead LOOP
      CONTINUE WHEN EXISTS (${partitionNameSql("day::text")});
      ${lockSchemaOrSkip};
      IF NOT FOUND THEN RETURN; END IF;
      PERFORM plantstore_make_day(day, greatest(1, extract(epoch FROM kept / 86400 / ${partitions})::integer));
    END LOOP;
  END $function$;

  CREATE FUNCTION plantstore_drop_day(kept interval) RETURNS bigint ${definer} AS $function$
  DECLARE name text; old bigint; dropped bigint := 0;
  BEGIN
    ${checkCaller("DELETE")}
    SELECT min(relname) INTO name FROM pg_inherits JOIN pg_class ON pg_class.oid = inhrelid
      WHERE inhparent = 'deletions'::regclass AND pg_table_is_visible(inhrelid) AND relname ~ '^deletions_[0-9]{8}$'
        AND ((SELECT max(bound[1]::date) + 1
          FROM regexp_matches(pg_get_expr(relpartbound, inhrelid), '[0-9]{4}-[0-9]{2}-[0-9]{2}', 'g') AS bound)
        )::timestamp AT TIME ZONE 'UTC' <= now() - kept;
    IF name IS NULL THEN
      FOREACH name IN ARRAY '{deletions_by_row, deletions_other_days}'::text[] LOOP
        EXECUTE format('SELECT count(*) FROM (SELECT 1 FROM %I WHERE deleted_at < $1 LIMIT 1) AS old', name)
          INTO old USING now() - kept;
        CONTINUE WHEN old = 0;
        dropped := dropped + (
          SELECT sum(result::bigint) FROM run_command_on_shards(name::regclass, format(${dropSliceSql}, kept)));
      END LOOP;
      RETURN NULLIF(dropped, 0);
    END IF;
    ${lockSchemaOrSkip};
    IF NOT FOUND THEN RETURN NULL; END IF;
    IF to_regclass(name) IS NULL THEN RETURN 0; END IF;
    IF citus_relation_size(name::regclass) > ${countedBytesMax} THEN
      SELECT sum(greatest(result::bigint, 0)) INTO dropped FROM run_command_on_shards(name::regclass,
        $$ SELECT reltuples::bigint FROM pg_class WHERE oid = '%s'::regclass $$);
    END IF;
    IF dropped = 0 THEN EXECUTE format('SELECT count(*) FROM %I', name) INTO dropped; END IF;
    EXECUTE format('DROP TABLE %I', name);
    RETURN dropped;
  END $function$;`;
