#!/usr/bin/env node
import { checkCommand } from "./index.ts";

process.exitCode = await checkCommand(process.argv.slice(2), {
  print: (text) => void process.stdout.write(`${text}\n`),
  complain: (text) => void process.stderr.write(`${text}\n`),
});
