import { checkConfiguration, readConfiguration, trimmedSettings } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { acceptedSettings, sourcesOf } from "./setting-flags.ts";

/** Checks the configuration of `serve`, and everything that it would open. */
export const checkCommand: Command = {
  name: "check",
  summary: "check the settings of serve, their files and the store, without changing anything",
  settings: acceptedSettings,
  notes: [
    "The exit code is 0 if serve would start and be usable,",
    "78 if a setting or a file is invalid, or the certificate has expired,",
    "1 if the store cannot be used, or tokens cannot be verified at the moment.",
  ],
  run: async (flags, _operands, terminal) => {
    const sources = sourcesOf(flags, terminal.environment);
    const configuration = readConfiguration(sources);
    for (const source of trimmedSettings(sources)) terminal.err(`removed the line break at the end of ${source}`);
    const { tokensProblem, telemetryProblems, warnings } = await checkConfiguration(configuration);
    for (const warning of warnings) terminal.err(`warning: ${warning}`);
    for (const problem of telemetryProblems) terminal.err(`OpenTelemetry: ${problem}`);
    if (tokensProblem !== undefined) throw new Error(`tokens cannot be verified: ${tokensProblem}`);
    terminal.err("the configuration is valid");
    return exitCode.ok;
  },
};
