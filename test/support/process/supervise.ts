/** Supervises two workers that run the program in `argv[2]` with the Node.js at the path in `argv[3]`. */
import { superviseWorkers } from "../../../src/command/supervise.ts";
import { openLog } from "../../../src/server/index.ts";

const [, , program = "", node = ""] = process.argv;
process.argv = [process.execPath, program];
process.execPath = node;
process.exitCode = await superviseWorkers({
  count: 2,
  bindOptions: { host: "127.0.0.1", port: 0 },
  adminAddress: undefined,
  httpEngine: "plantstore",
  onHangup: () => undefined,
  log: openLog("info"),
});
