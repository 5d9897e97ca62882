import type { Client } from "pg";

/** The SASL mechanism with channel binding (postgresql.org/docs/current/sasl-authentication.html). */
const mechanism = "SCRAM-SHA-256-PLUS";

/**
 * Makes a client refuse servers that authenticate it without channel binding, as libpq's `channel_binding=require`
 * does, before it sends the password, or the proof that it knows the password. node-postgres would continue without.
 *
 * @returns a function that returns why the server was refused. Call it when the client has connected, because the
 * client may see that the start-up has ended before it sees that the connection has
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
