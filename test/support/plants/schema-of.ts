import { type StoreSchema, storeSchema } from "../../../src/stores/postgres/schema/store-schema.ts";
import type { Session } from "../../../src/stores/postgres/server/session.ts";

/** Returns the schema that the `search_path` in the URL of a session names first. */
export function schemaOf(session: Session): StoreSchema {
  return storeSchema(session.settings.get("search_path")?.split(",")[0] ?? "public");
}
