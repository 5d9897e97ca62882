/**
 * The statements that create the tables for schema version 1, in the first schema in the `search_path`.
 *
 * - In `deletions`, plant_id is not unique, because a restored plant can be deleted again. Retries and imports search
 *   by plant. `plantstore deletions` and retention search by time.
 * - `plantstore_schema` also contains the marks of moves ({@link MoveMarks}).
 * - The index `deletions_by_key` lets only one of several processes use a key, and has no entries for deletions without
 *   a key.
 */
export const tablesSql = `
  CREATE TABLE plantstore_schema (
    version integer PRIMARY KEY,
    oldest_server integer NOT NULL,
    moved_to text,
    moved_from text,
    undone text NOT NULL DEFAULT '');
  INSERT INTO plantstore_schema (version, oldest_server) VALUES (1, 1);
  CREATE TABLE plants (id bigint PRIMARY KEY);
  CREATE TABLE deletions (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plant_id bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    subject text NOT NULL,
    request_id text NOT NULL,
    batch uuid NOT NULL,
    idempotency_key text);
  CREATE INDEX deletions_by_plant ON deletions (plant_id);
  CREATE INDEX deletions_by_time ON deletions (deleted_at);
  CREATE UNIQUE INDEX deletions_by_key ON deletions (idempotency_key) WHERE idempotency_key IS NOT NULL;`;
