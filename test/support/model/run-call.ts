import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deleteCall } from "../plants/delete-call.ts";
import type { Call, Message } from "./store-host.ts";

/** The shortest time that records may be kept. */
export const deletionsKeptMs = 3_600_000;

/** Runs a deletion, and returns its outcome. */
export const runCall = (store: PlantStore, { id, key, subject, requestId }: Call): Promise<Message> =>
  store.delete(BigInt(id), deleteCall({ subject, requestId, idempotencyKey: key })).then(
    (isDeleted) => ({ requestId, outcome: isDeleted ? "deleted" : "not found" }),
    ({ errorCode }) => ({ requestId, outcome: errorCode ?? "ERR_INTERNAL" }),
  );
