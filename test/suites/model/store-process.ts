// A process that holds a store, for this folder's tests, which kill it. Its argument is the location in JSON.
import { openPlantStore } from "../../../src/stores/index.ts";
import { deleteCall } from "../../support/plants/delete-call.ts";
import type { Call, Message } from "./store-host.ts";

/** The shortest time that records may be kept. */
const deletionsKeptMs = 3_600_000;

const store = await openPlantStore(JSON.parse(process.argv[2] ?? ""), { deletionsKeptMs });
const reply = (message: Message): void => void process.send?.(message);

process.on("message", (call: Call | "close") => {
  if (call === "close") return void store.close().then(() => process.disconnect?.());
  const { id, key: idempotencyKey, subject, requestId } = call;
  store.delete(BigInt(id), deleteCall({ subject, requestId, idempotencyKey })).then(
    (isDeleted) => reply({ requestId, outcome: isDeleted ? "deleted" : "not found" }),
    ({ errorCode }) => reply({ requestId, outcome: errorCode ?? "ERR_INTERNAL" }),
  );
});
reply({ requestId: "", outcome: "open" });
