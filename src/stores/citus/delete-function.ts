/** The signature of `plantstore_delete`, for `to_regprocedure`. */
export const deleteFunction = "plantstore_delete(bigint, bigint[], text[], text[], uuid, text[], boolean)";

// Whether any plant is on another worker than the function. NOT IN calculates the shard of each plant only once.
const isOnOtherWorkerSql = (ids: string): string => `EXISTS (
        SELECT FROM unnest(${ids}) AS id WHERE get_shard_id_for_distribution_column('plants', id) NOT IN (
          SELECT shardid FROM pg_dist_placement WHERE groupid = (SELECT groupid FROM pg_dist_local_group)))`;

// Whether a trigger on this server may drop records. Finds row-level BEFORE INSERT triggers by bits 0 to 2 of `tgtype`.
const mayDropRecords = `EXISTS (
        SELECT FROM pg_trigger
        WHERE tgtype & 7 = 7 AND NOT tgisinternal AND strpos(tgrelid::regclass::text, 'deletions_') > 0
      )`;

/**
 * The body of `plantstore_delete`. `migrate` replaces a different body in the database.
 *
 * The function is one transaction on one worker. If `token` is NULL, only checks the worker's settings. If `skips` is
 * true, skips locked plants. SKIP LOCKED works only on one shard at a time. Reports missing plants only after a wait
 * for the standbys. On the wrong worker, the batch is a two-phase commit, and every worker waits for its standbys.
 *
 * The function resets settings that another client of a pooler may have changed on the coordinator.
 * `client_min_messages` forwards the workers' warnings, and is set last, because it slows down later statements. Loops
 * collect ids, because Citus writes a CTE's rows to a file.
 *
 * The function fails if a trigger drops records. Citus's row count includes the records that triggers on shards have
 * dropped, and counting the stored records would double the function's duration. So the function counts records only if
 * this server has such a trigger, or if plants are on another server, whose triggers are unknown.
 *
 * After nodes change, such as in a failover, Citus runs the function on the coordinator until all nodes know the
 * change. The deletions are then committed on the plants' workers. If no plant is deleted, the function writes records
 * for the missing plants on the workers, and rolls them back to a savepoint. The commit still waits for the workers'
 * standbys. If a trigger prevents the records, the deletion is retried until a worker runs the function.
 */
export const functionBody: string = `
  DECLARE
    part bigint[]; free bigint[]; present bigint; recorded bigint; missing bigint[]; undone uuid;
  BEGIN
    PERFORM set_config('synchronous_commit', NULL, true);
    IF current_setting('fsync') = 'off' OR current_setting('synchronous_commit') NOT IN ('on', 'remote_apply') THEN
      RAISE 'fsync is % and synchronous_commit is % on the worker %:%, so commits would not be durable',
        current_setting('fsync'), current_setting('synchronous_commit'), inet_server_addr(), inet_server_port()
        USING ERRCODE = '0A000';
    END IF;
    IF token IS NULL THEN RETURN; END IF;
    IF skips THEN
      FOR part IN
        SELECT array_agg(id) FROM unnest(ids) AS id GROUP BY get_shard_id_for_distribution_column('plants', id)
      LOOP
        free := '{}';
        FOR present IN SELECT id FROM plants WHERE id = ANY(part) FOR UPDATE SKIP LOCKED LOOP
          free := free || present;
        END LOOP;
        FOR present IN DELETE FROM plants WHERE id = ANY(free) AND id = ANY(part) RETURNING id LOOP
          deleted := deleted || present;
        END LOOP;
        FOR present IN SELECT id FROM plants WHERE id = ANY(part) LOOP
          IF present = ANY(free) THEN kept := kept || present; ELSE locked := locked || present; END IF;
        END LOOP;
      END LOOP;
    ELSE
      FOR present IN DELETE FROM plants WHERE id = ANY(ids) RETURNING id LOOP deleted := deleted || present; END LOOP;
    END IF;
    IF deleted IS NOT NULL THEN
      INSERT INTO deletions (plant_id, batch, subject, request_id, idempotency_key)
        SELECT id, token, subject, request_id, NULLIF(key, '')
        FROM unnest(ids, subjects, request_ids, keys) AS call (id, subject, request_id, key) WHERE id = ANY(deleted);
      GET DIAGNOSTICS recorded = ROW_COUNT;
      IF ${mayDropRecords} OR ${isOnOtherWorkerSql("deleted")} THEN
        SELECT count(DISTINCT plant_id) INTO recorded FROM deletions WHERE plant_id = ANY(deleted) AND batch = token;
      END IF;
      IF recorded < cardinality(deleted) THEN
        RAISE 'a trigger drops the record of a plant' USING ERRCODE = '22P02';
      END IF;
    ELSIF ${isOnOtherWorkerSql("ARRAY[one]")} THEN
      undone := gen_random_uuid();
      missing := ARRAY(SELECT unnest(ids || one) EXCEPT SELECT unnest(locked || kept));
      BEGIN
        INSERT INTO deletions (plant_id, batch, subject, request_id)
          SELECT id, undone, '', '' FROM unnest(missing) AS id;
        SELECT count(*) INTO recorded FROM deletions WHERE plant_id = ANY(missing) AND batch = undone;
        RAISE 'to be undone';
      EXCEPTION WHEN OTHERS THEN
        IF recorded IS DISTINCT FROM cardinality(missing) THEN
          RAISE 'Citus did not run the deletion on a worker, and waiting for its standbys failed: %', SQLERRM
            USING ERRCODE = '40001';
        END IF;
      END;
    ELSIF current_setting('synchronous_standby_names') <> '' THEN
      PERFORM pg_logical_emit_message(true, 'plantstore', '');
    END IF;
    PERFORM set_config('client_min_messages', 'debug1', true);
  END `;

/** Creates the function, or replaces it. */
export const functionSql: string = `
  CREATE OR REPLACE FUNCTION plantstore_delete(
    one bigint, ids bigint[], subjects text[], request_ids text[], token uuid, keys text[], skips boolean,
    OUT deleted bigint[], OUT locked bigint[], OUT kept bigint[]
  ) LANGUAGE plpgsql SET search_path FROM CURRENT AS $$${functionBody}$$;`;
