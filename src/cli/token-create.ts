import { issueToken, settings } from "../server/index.ts";
import { type Command, textOf, UsageError } from "./command.ts";
import { exitCode } from "./exit-code.ts";

/** Makes a bearer token, shows it once and keeps its hash. */
export const tokenCreate: Command = {
  name: "token create",
  synopsis: "NAME [--scope S]... [--expires T] [--file F]",
  summary: "make a bearer token, shown once; only its hash is kept",
  options: {
    scope: { type: "string", multiple: true },
    expires: { type: "string" },
    file: { type: "string" },
  },
  positionals: [1, 1],
  help: () => [
    "  NAME         who will use the token: the subject of its calls, in logs and in the record of deletions",
    "  --scope S    what it may be used for, for example plants:delete; may be repeated; all when left out",
    "  --expires T  when it stops working, for example 2030-01-31T12:00:00Z; never when left out",
    `  --file F     the file of token hashes to add it to; ${settings.tokenHashesFile.variable} when left out`,
    "",
    "Without a file the line to keep is printed to standard error. The token goes to standard output.",
  ],
  run: async (flags, [name = ""], terminal) => {
    const file = textOf(flags["file"]) ?? (terminal.environment[settings.tokenHashesFile.variable] || undefined);
    const scopes = Array.isArray(flags["scope"]) ? flags["scope"].join(",") : "-";
    const wish = { name, scopes, expiry: textOf(flags["expires"]) ?? "-", file };
    // Tried without the file first: what is wrong with the words is wrong usage, what is wrong with the file is not.
    const rehearsal = await issueToken({ ...wish, file: undefined });
    if (rehearsal.kind === "problems") throw new UsageError(rehearsal.problems.join("; "));
    const issued = file === undefined ? rehearsal : await issueToken(wish);
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
