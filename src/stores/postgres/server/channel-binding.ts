import type { Client } from "pg";

/** The SASL mechanism with channel binding (postgresql.org/docs/current/sasl-authentication.html). */
const mechanism = "SCRAM-SHA-256-PLUS";

/**
 * Makes a client refuse servers that authenticate without channel binding, like libpq's `channel_binding=require`. The
 * client refuses before it sends the password or a proof of the password. node-postgres would continue without binding.
 *
 * @returns a function that returns why the server was refused. Call the function once the client has connected. The
 * client may report success before it notices that the connection is closed
 */
export function requireChannelBinding({ connection }: Client): () => Error | undefined {
  let isBound = false;
  let refusal: Error | undefined;
  const refuse = (what: string): void => {
    refusal ??= new Error(`channel_binding is require, but the server ${what}`);
    connection.stream.destroy(refusal);
  };
  connection.prependListener("authenticationCleartextPassword", () => refuse("requests the password"));
  connection.prependListener("authenticationMD5Password", () => refuse("requests an MD5 hash of the password"));
  connection.prependListener("authenticationSASL", ({ mechanisms }: { readonly mechanisms: readonly string[] }) => {
    if (!mechanisms.includes(mechanism)) refuse(`offers only ${mechanisms.join(", ")}`);
  });
  connection.prependListener("authenticationSASLFinal", () => (isBound = true));
  connection.prependListener("authenticationOk", () => {
    if (!isBound) refuse("does not authenticate the user");
  });
  return () => refusal;
}
