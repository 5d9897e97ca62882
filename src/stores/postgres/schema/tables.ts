/**
 * Creates the tables of schema version 1, in the first schema of the `search_path`. They are plain tables and b-trees,
 * which other databases with the PostgreSQL protocol also support.
 *
 * - In `deletions`, plant_id is not unique: a restored plant can be deleted again.
 * - The indexes are by plant for retries and imports, and by time for `deletions` and retention.
 * - If two processes use the same key at the same time, the index by key allows only one to commit. The index has no
 *   entries for deletions without a key, so it does not slow them down.
 * - `plantstore_schema` has a key because otherwise its row could not be updated in a publication of all tables.
 */
export const tablesSql = `
  CREATE TABLE plantstore_schema (version integer PRIMARY KEY, oldest_server integer NOT NULL);
  INSERT INTO plantstore_schema (version, oldest_server) VALUES (1, 1);
  CREATE TABLE plants (id bigint PRIMARY KEY);
  CREATE TABLE deletions (
    seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    plant_id bigint NOT NULL,
    deleted_at timestamptz NOT NULL DEFAULT now(),
    subject text NOT NULL,
    request_id text NOT NULL,
    batch uuid NOT NULL,
    idempotency_key text
  );
  CREATE INDEX deletions_by_plant ON deletions (plant_id);
  CREATE INDEX deletions_by_time ON deletions (deleted_at);
  CREATE UNIQUE INDEX deletions_by_key ON deletions (idempotency_key) WHERE idempotency_key IS NOT NULL;`;
