import { listTokens } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { tokenFileFlag, tokenFileHelp, tokenFileOf } from "./token-file-flag.ts";

/** Prints the tokens of a file of token hashes. */
export const tokenListCommand: Command = {
  name: "token list",
  synopsis: "[--file F]",
  summary: "print the name, scopes and expiry of every token of a file",
  options: tokenFileFlag,
  positionals: [0, 0],
  help: () => [tokenFileHelp],
  run: async (flags, _positionals, terminal) => {
    const file = tokenFileOf(flags, terminal);
    const tokens = await listTokens(file);
    if (tokens.kind === "problems") throw new Error(`${file}: ${tokens.problems.join("; ")}`);
    for (const { name, scopes, expiresAtMs } of tokens.value) {
      const until = expiresAtMs === undefined ? "-" : new Date(expiresAtMs).toISOString();
      const passed = expiresAtMs !== undefined && expiresAtMs <= Date.now() ? " (expired)" : "";
      terminal.out(`${name} ${scopes === "all" ? "-" : [...scopes].join(",")} ${until}${passed}`);
    }
    return exitCode.ok;
  },
};
