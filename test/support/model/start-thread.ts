import { once } from "node:events";
import { openPlantStore } from "../../../src/stores/index.ts";
import type { PlantStore } from "../../../src/service/plant-store.ts";
import { deletionsKeptMs, runCall } from "./run-call.ts";
import type { StartStore } from "./store-host.ts";

/** Opens an SQLite store in this process, where `kill` terminates its thread. @param change - changes the store */
export function startInThread(change: (store: PlantStore) => PlantStore = (store) => store): StartStore {
  return async (location, onMessage) => {
    const started = once(process, "worker");
    const opened = await openPlantStore(location, { deletionsKeptMs });
    const [thread] = await started;
    const store = change(opened);
    let isRunning = true;
    return {
      send: (call) => void runCall(store, call).then((message) => isRunning && onMessage(message)),
      close: async () => {
        await opened.close();
        isRunning = false;
      },
      kill: async () => {
        isRunning = false;
        await thread.terminate();
        await opened.close();
      },
      get isRunning() {
        return isRunning;
      },
    };
  };
}
