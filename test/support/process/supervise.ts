/** Supervises two workers that run the program in `argv[2]` with the Node.js at the path in `argv[3]`. */
import { superviseWorkers } from "../../../src/command/supervise.ts";

const [, , program = "", node = ""] = process.argv;
process.argv = [process.execPath, program];
process.execPath = node;
const configuration = { workers: 2, adminAddress: { host: "127.0.0.1", port: 0 }, logLevel: "info" } as const;
process.exitCode = await superviseWorkers(configuration, () => undefined);
