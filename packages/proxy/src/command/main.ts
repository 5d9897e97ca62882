#!/usr/bin/env node
import { proxyCommand } from "./program.ts";
import { processTerminal } from "./terminal.ts";

process.exitCode = await proxyCommand(process.argv.slice(2), processTerminal());
