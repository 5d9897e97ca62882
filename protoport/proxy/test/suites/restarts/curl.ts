/** Calls with curl, one process for each call: `node curl.ts PORT [retry]`. */
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { callUntilTheEnd } from "./calls.ts";

const [, , port, setting] = process.argv;
const retry = ["--retry", "20", "--retry-delay", "1", "--retry-all-errors"];
const options = ["--silent", "--show-error", "--fail", ...(setting === "retry" ? retry : [])];
const url = `http://127.0.0.1:${port}/sensors/a/reading`;

await callUntilTheEnd(() => promisify(execFile)("curl", [...options, url]));
