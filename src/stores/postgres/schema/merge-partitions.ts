const columns = "seq, plant_id, deleted_at, subject, request_id, batch, idempotency_key";

/**
 * Merges records that are partitioned by day into one table, so that Citus can distribute it. Keeps triggers and
 * privileges. The first DETACH blocks deletions, so that the new table does not reuse the `seq` of a deletion.
 */
export const mergePartitionsSql: string = `
  DO $gather$ DECLARE
    triggers text[] := '{}'; grants text[] := '{}'; one record; sql text; last bigint;
  BEGIN
    IF NOT EXISTS (SELECT FROM pg_class WHERE oid = to_regclass('deletions') AND relkind = 'p') THEN RETURN; END IF;
    ALTER TABLE deletions DETACH PARTITION deletions_by_row;
    FOR one IN SELECT tgname, tgenabled, pg_get_triggerdef(oid) AS definition
      FROM pg_trigger WHERE tgrelid = 'deletions'::regclass AND NOT tgisinternal
    LOOP
      triggers := triggers || one.definition || format('ALTER TABLE deletions %s TRIGGER %I', CASE one.tgenabled
        WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
        one.tgname);
      EXECUTE format('DROP TRIGGER %I ON deletions', one.tgname);
    END LOOP;
    FOR one IN SELECT * FROM pg_class CROSS JOIN aclexplode(relacl) WHERE oid = 'deletions'::regclass LOOP
      grants := grants || format('GRANT %s ON deletions TO %s%s', one.privilege_type,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END,
        CASE WHEN one.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;
    EXECUTE 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM '
      || pg_get_serial_sequence('deletions', 'seq') INTO last;
    INSERT INTO deletions_by_row (${columns}) SELECT ${columns} FROM deletions;
    DROP TABLE deletions;
    DROP FUNCTION plantstore_make_day(date), plantstore_make_days(), plantstore_drop_day(interval);
    ALTER TABLE deletions_by_row RENAME TO deletions;
    ALTER INDEX deletions_by_row_by_plant RENAME TO deletions_by_plant;
    ALTER INDEX deletions_by_row_by_time RENAME TO deletions_by_time;
    EXECUTE format('ALTER TABLE deletions ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (START WITH %s)', last + 1);
    FOREACH sql IN ARRAY grants || triggers LOOP EXECUTE sql; END LOOP;
  END $gather$`;
