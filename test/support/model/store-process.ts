// A process that holds a store, for tests that kill it. Its argument is the location in JSON.
import { openPlantStore } from "../../../src/stores/index.ts";
import { deletionsKeptMs, runCall } from "./run-call.ts";
import type { Call, Message } from "./store-host.ts";

const store = await openPlantStore(JSON.parse(process.argv[2] ?? ""), { deletionsKeptMs });
const reply = (message: Message): void => void process.send?.(message);

process.on("message", (call: Call | "close") => {
  if (call === "close") return void store.close().then(() => process.disconnect?.());
  void runCall(store, call).then(reply);
});
reply({ requestId: "", outcome: "open" });
