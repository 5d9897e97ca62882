/** Calls with fetch: `node fetch.ts PORT [retry]`. */
import { setTimeout as pause } from "node:timers/promises";
import { callUntilTheEnd } from "./calls.ts";

const [, , port, setting] = process.argv;
/** Attempts of a call, 200 ms apart, as long as a server may take to restart. */
const attempts = setting === "retry" ? 50 : 1;

async function read(): Promise<void> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      const response = await fetch(`http://127.0.0.1:${port}/sensors/a/reading`);
      await response.bytes();
      if (response.status !== 200) throw new Error(`HTTP ${response.status}`);
      return;
    } catch (error) {
      if (attempt === attempts) throw error;
      await pause(200);
    }
  }
}

await callUntilTheEnd(read);
