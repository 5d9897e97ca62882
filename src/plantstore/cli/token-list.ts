import { listTokens } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { tokenFileFlag, tokenFileOf } from "./token-file-flag.ts";

/** Prints the tokens of a file of token hashes. */
export const tokenListCommand: Command = {
  name: "token list",
  summary: "print the name, scopes and expiry of every token of a file",
  flags: tokenFileFlag,
  run: async (flags, _operands, terminal) => {
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
