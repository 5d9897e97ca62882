/** Finds a row if the deletion records are in partitions by day. */
export const isByDaySql = "SELECT FROM pg_class WHERE oid = to_regclass('deletions') AND relkind = 'p'";

/** The declarations of a block that hands triggers and privileges on, as `takeSql` and `giveSql` do. */
export const handOnSql = "triggers text[] := '{}'; grants text[] := '{}'; one record; sql text; last bigint;";

/** Takes note of the privileges on the table `deletions`. */
export const grantsSql: string = `
    FOR one IN SELECT * FROM pg_class CROSS JOIN aclexplode(relacl) WHERE oid = 'deletions'::regclass LOOP
      grants := grants || format('GRANT %s ON deletions TO %s%s', one.privilege_type,
        CASE one.grantee WHEN 0 THEN 'PUBLIC' ELSE one.grantee::regrole::text END,
        CASE WHEN one.is_grantable THEN ' WITH GRANT OPTION' ELSE '' END);
    END LOOP;`;

/** Takes note of the triggers and privileges of the table `deletions`, and removes the triggers. */
export const takeSql: string = `
    FOR one IN SELECT tgname, tgenabled, pg_get_triggerdef(oid) AS definition
      FROM pg_trigger WHERE tgrelid = 'deletions'::regclass AND NOT tgisinternal
    LOOP
      triggers := triggers || one.definition || format('ALTER TABLE deletions %s TRIGGER %I', CASE one.tgenabled
        WHEN 'D' THEN 'DISABLE' WHEN 'R' THEN 'ENABLE REPLICA' WHEN 'A' THEN 'ENABLE ALWAYS' ELSE 'ENABLE' END,
        one.tgname);
      EXECUTE format('DROP TRIGGER %I ON deletions', one.tgname);
    END LOOP;
    ${grantsSql}
    EXECUTE 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM '
      || pg_get_serial_sequence('deletions', 'seq') INTO last;`;

/** Gives them to the table that has its name afterwards. The next `seq` is one more than the last. */
export const giveSql: string = `
    EXECUTE format('ALTER TABLE deletions ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (START WITH %s)', last + 1);
    FOREACH sql IN ARRAY grants || triggers LOOP EXECUTE sql; END LOOP;`;

const columns = "seq, plant_id, deleted_at, subject, request_id, batch, idempotency_key";

/**
 * Makes one table of records again that are divided by day, in one transaction: Citus spreads it over its workers. The
 * detachment comes first, because it locks deletions out, whose `seq` would be used again.
 */
export const gatherSql: string = `
  DO $gather$ DECLARE ${handOnSql} BEGIN
    IF NOT EXISTS (${isByDaySql}) THEN RETURN; END IF;
    ALTER TABLE deletions DETACH PARTITION deletions_by_row;
    ${takeSql}
    INSERT INTO deletions_by_row (${columns}) SELECT ${columns} FROM deletions;
    DROP TABLE deletions;
    DROP FUNCTION plantstore_make_day(date), plantstore_make_days(), plantstore_drop_day(interval);
    ALTER TABLE deletions_by_row RENAME TO deletions;
    ALTER INDEX deletions_by_row_by_plant RENAME TO deletions_by_plant;
    ALTER INDEX deletions_by_row_by_time RENAME TO deletions_by_time;
    ${giveSql}
  END $gather$`;
