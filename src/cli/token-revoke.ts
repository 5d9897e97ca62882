import { revokeToken } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { tokenFileFlag, tokenFileHelp, tokenFileOf } from "./token-file-flag.ts";

/** Removes a token from a file of token hashes. */
export const tokenRevokeCommand: Command = {
  name: "token revoke",
  synopsis: "NAME [--file F]",
  summary: "remove a token from a file; servers that read it stop taking the token",
  options: tokenFileFlag,
  positionals: [1, 1],
  help: () => ["  NAME      the name that the token was created with", tokenFileHelp],
  run: async (flags, [name = ""], terminal) => {
    const file = tokenFileOf(flags, terminal);
    const revoked = await revokeToken(file, name);
    if (revoked.kind === "problems") throw new Error(`${file}: ${revoked.problems.join("; ")}`);
    terminal.err(`removed ${name} from ${file}`);
    return exitCode.ok;
  },
};
