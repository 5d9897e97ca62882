import { fetchServerReadiness, checkConfiguration, readConfiguration } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { acceptedSettings, sourcesOf } from "./setting-flags.ts";

/** The `check` command, which checks the configuration for `serve` and everything that `serve` would open. */
export const checkStoreCommand: Command = {
  name: "check",
  summary: "check the settings of serve, their files and the store, without changing anything",
  settings: acceptedSettings,
  notes: [
    "If PLANTSTORE_ADMIN_ADDRESS is set, also asks the running server for its problems.",
    "The exit code is 0 if serve would start, on free ports, and be ready,",
    "78 if a setting or a file is invalid, or the certificate is not valid now,",
    "1 if the store cannot be used, tokens cannot be verified at the moment, or the running server is not ready.",
  ],
  run: async (flags, _operands, terminal) => {
    const configuration = readConfiguration(sourcesOf(flags, terminal.environment));
    const readiness = await fetchServerReadiness(configuration.adminAddress);
    if (readiness.isRequested) terminal.err(readiness.text);
    // Prints each warning immediately, because a later check may fail.
    const warn = (warning: string): void => terminal.err(`warning: ${warning}`);
    const { tokensProblem, telemetryProblems } = await checkConfiguration(configuration, warn);
    for (const problem of telemetryProblems) terminal.err(`OpenTelemetry: ${problem}`);
    if (tokensProblem !== undefined) throw new Error(`tokens cannot be verified: ${tokensProblem}`);
    terminal.err(
      readiness.isRequested ? "the configuration is valid" : `the configuration is valid; ${readiness.text}`,
    );
    if (readiness.hasProblems) throw new Error("the running server is not ready");
    return exitCode.ok;
  },
};
