import { issuePlantToken, settings } from "../server/index.ts";
import { exitCode, type Command, textOf, UsageError } from "./command.ts";
import { parseDurationMs } from "./duration.ts";
import { tokenFileFlag } from "./token-file-flag.ts";

/** Creates a bearer token, shows it once and stores its hash. */
export const tokenCreateCommand: Command = {
  name: "token create",
  summary: "create a bearer token, shown once; only its hash is stored",
  operands: [{ name: "NAME", about: "who will use the token: the subject of its calls in logs and deletion records" }],
  flags: {
    scope: {
      value: "SCOPE",
      about: "a scope of the token, for example plants:delete; may be repeated; default all",
      multiple: true,
    },
    expires: {
      value: "TIME",
      about: "when it stops working, for example 90d or 2030-01-31T12:00:00Z; default never",
    },
    ...tokenFileFlag,
  },
  notes: ["Without a file, the line for it is printed to standard error. The token goes to standard output."],
  run: async (flags, [name = ""], terminal) => {
    const file = textOf(flags["file"]) ?? (terminal.environment[settings.tokenHashesFile.variable] || undefined);
    const scopes = Array.isArray(flags["scope"]) ? flags["scope"].join(",") : "-";
    const request = { name, scopes, expiry: expiryOf(textOf(flags["expires"])), file };
    // First without the file: a wrong name, scope or expiry is wrong usage; a problem with the file is not.
    const dryRun = await issuePlantToken({ ...request, file: undefined });
    if (dryRun.kind === "problems") throw new UsageError(dryRun.problems.join("; "));
    const issued = file === undefined ? dryRun : await issuePlantToken(request);
    if (issued.kind === "problems") throw new Error(`${file}: ${issued.problems.join("; ")}`);
    terminal.out(issued.value.token);
    terminal.err(
      file === undefined
        ? `keep this line: ${issued.value.line}`
        : `added ${name} to ${file}; the token is not shown again`,
    );
    return exitCode.ok;
  },
};

// A duration counts from now, to the second.
function expiryOf(text: string = "-"): string {
  const durationMs = parseDurationMs(text);
  if (durationMs === undefined) return text;
  return new Date(Date.now() + durationMs).toISOString().replace(/\.\d+Z$/, "Z");
}
