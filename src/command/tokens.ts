import { listTokens, revokeToken } from "@protoport/auth";
import { type Flag, type ParsedFlags, textOf, UsageError } from "@protoport/command-line";
import { ConfigurationError, issuePlantToken, settings } from "../server/index.ts";
import { type Command, exitCode, parseDurationMs, type PlantTerminal } from "./command.ts";

const { variable } = settings.tokenHashesFile;

const fileFlag: Readonly<Record<string, Flag>> = {
  file: { value: "FILE", about: `the file of token hashes; default ${variable}` },
};

function configuredFile(flags: ParsedFlags, { environment }: PlantTerminal): string | undefined {
  return (textOf(flags["file"]) ?? environment[variable]) || undefined;
}

/** Returns the token hash file for a command. Throws ConfigurationError if no file is configured. */
function fileOf(flags: ParsedFlags, terminal: PlantTerminal): string {
  const file = configuredFile(flags, terminal);
  if (file === undefined) throw new ConfigurationError([`the file is missing; set --file or ${variable}`]);
  return file;
}

/** The `token create` command, which prints a new bearer token once and stores only the token's hash. */
export const tokenCreateCommand: Command = {
  name: "token create",
  summary: "create a bearer token; it is shown once, and only its hash is stored",
  operands: [{ name: "NAME", about: "name of the token: the subject of its calls in logs and deletion records" }],
  flags: {
    scope: {
      value: "SCOPE",
      about: "a scope of the token, for example plants:delete; can be repeated; default all",
      multiple: true,
    },
    expires: { value: "TIME", about: "when the token expires, for example 90d or 2030-01-31T12:00:00Z; default never" },
    ...fileFlag,
  },
  notes: [
    "The token is printed to standard output. Without a file, the line to add to one is printed to standard error.",
  ],
  run: async (flags, [name = ""], terminal) => {
    const file = configuredFile(flags, terminal);
    const scopes = Array.isArray(flags["scope"]) ? flags["scope"].join(",") : "-";
    const request = { name, scopes, expiry: expiryOf(textOf(flags["expires"])), file };
    // Checks the arguments before using the file, because problems with the file are not usage errors.
    const dryRun = await issuePlantToken({ ...request, file: undefined });
    if (dryRun.kind === "problems") throw new UsageError(dryRun.problems.join("; "));
    const issued = file === undefined ? dryRun : await issuePlantToken(request);
    if (issued.kind === "problems") throw new Error(`${file}: ${issued.problems.join("; ")}`);
    terminal.out(issued.value.token);
    terminal.err(
      file === undefined
        ? `add this line to a file of token hashes: ${issued.value.line}`
        : `added ${name} to ${file}; the token will not be shown again`,
    );
    return exitCode.ok;
  },
};

// Adds a duration to the current time. The result is rounded down to a second.
function expiryOf(text: string = "-"): string {
  const durationMs = parseDurationMs(text);
  if (durationMs === undefined) return text;
  return new Date(Date.now() + durationMs).toISOString().replace(/\.\d+Z$/, "Z");
}

/** The `token list` command, which prints the tokens in a token hash file. */
export const tokenListCommand: Command = {
  name: "token list",
  summary: "print the name, scopes and expiry of every token of a file",
  flags: { ...fileFlag, json: { about: "print one JSON object per line" } },
  run: async (flags, _operands, terminal) => {
    const file = fileOf(flags, terminal);
    const tokens = await listTokens(file);
    if (tokens.kind === "problems") throw new Error(`${file}: ${tokens.problems.join("; ")}`);
    for (const { name, scopes, expiresAtMs } of tokens.value) {
      if (flags["json"] === true) {
        const expiresAt = expiresAtMs === undefined ? null : new Date(expiresAtMs).toISOString();
        terminal.out(JSON.stringify({ name, scopes: scopes === "all" ? scopes : [...scopes], expiresAt }));
        continue;
      }
      const expiryText = expiresAtMs === undefined ? "-" : new Date(expiresAtMs).toISOString();
      const expired = expiresAtMs !== undefined && expiresAtMs <= Date.now() ? " (expired)" : "";
      terminal.out(`${name} ${scopes === "all" ? "-" : [...scopes].join(",")} ${expiryText}${expired}`);
    }
    return exitCode.ok;
  },
};

/** The `token revoke` command, which removes a token from a token hash file. */
export const tokenRevokeCommand: Command = {
  name: "token revoke",
  summary: "remove a token from a file; servers that use the file stop accepting it",
  operands: [{ name: "NAME", about: "the name that the token was created with" }],
  flags: fileFlag,
  run: async (flags, [name = ""], terminal) => {
    const file = fileOf(flags, terminal);
    const revoked = await revokeToken(file, name);
    if (revoked.kind === "problems") throw new Error(`${file}: ${revoked.problems.join("; ")}`);
    terminal.err(`removed ${name} from ${file}`);
    return exitCode.ok;
  },
};
