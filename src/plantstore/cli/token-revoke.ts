import { revokeToken } from "../server/index.ts";
import { exitCode, type Command } from "./command.ts";
import { tokenFileFlag, tokenFileOf } from "./token-file-flag.ts";

/** Removes a token from a file of token hashes. */
export const tokenRevokeCommand: Command = {
  name: "token revoke",
  summary: "remove a token from a file; servers that read it stop taking the token",
  operands: [{ name: "NAME", about: "the name that the token was created with" }],
  flags: tokenFileFlag,
  run: async (flags, [name = ""], terminal) => {
    const file = tokenFileOf(flags, terminal);
    const revoked = await revokeToken(file, name);
    if (revoked.kind === "problems") throw new Error(`${file}: ${revoked.problems.join("; ")}`);
    terminal.err(`removed ${name} from ${file}`);
    return exitCode.ok;
  },
};
