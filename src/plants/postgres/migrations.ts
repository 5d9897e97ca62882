/**
 * The schema of the PostgreSQL store, one step a version. Forward only: a step that was published is
 * never edited, a change is a new step at the end. Step `i` makes version `i + 1`.
 *
 * Plain tables and b-trees, so that engines that speak PostgreSQL's protocol take them too.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE plantstore_schema (version integer NOT NULL);
   INSERT INTO plantstore_schema (version) VALUES (0);
   CREATE TABLE plants (id bigint PRIMARY KEY);`,
  // plant_id is no key: a plant that was restored can be deleted again. Its index answers a retry, which
  // asks for the ids of one batch, and an import, which asks whether an id was deleted.
  `CREATE TABLE deletions (
     seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
     plant_id bigint NOT NULL,
     deleted_at timestamptz NOT NULL DEFAULT now(),
     subject text NOT NULL,
     request_id text NOT NULL,
     batch uuid NOT NULL
   );
   CREATE INDEX deletions_by_plant ON deletions (plant_id);
   CREATE INDEX deletions_by_time ON deletions (deleted_at);`,
];
