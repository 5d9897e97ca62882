import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { toolsFolder } from "../../../protoport/testing/src/process/tools-folder.ts";
import type { Message, StartStore } from "./store-host.ts";

const program = fileURLToPath(new URL("store-process.ts", import.meta.url));

/** Opens a store in a separate process, which `kill` ends by SIGKILL. */
export const startInProcess: StartStore = async (location, onMessage) => {
  const child = fork(program, [JSON.stringify(location)], {
    execArgv: [],
    env: { ...process.env, NODE_COMPILE_CACHE: toolsFolder("compile-cache") },
  });
  child.on("message", (message: Message) => onMessage(message));
  const [message] = await Promise.race([once(child, "message"), once(child, "exit")]);
  if (message?.outcome !== "open") throw new Error("the process did not open its store");
  return {
    send: (call) => child.send(call),
    close: () => stop(child, () => child.send("close")),
    kill: () => stop(child, () => child.kill("SIGKILL")),
    get isRunning() {
      return child.connected;
    },
  };
};

async function stop(child: ChildProcess, how: () => void): Promise<void> {
  const exit = once(child, "exit");
  how();
  await exit;
}
