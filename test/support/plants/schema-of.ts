import { storeSchema, type StoreSchema } from "../../../src/stores/postgres/schema/store-schema.ts";
import type { Session } from "../../../src/stores/postgres/server/session.ts";

/** Returns the first schema that `search_path` in a session's URL names. */
export const schemaOf = (session: Session): StoreSchema =>
  storeSchema(session.requestedSettings.get("search_path")?.split(",")[0] ?? "public");
