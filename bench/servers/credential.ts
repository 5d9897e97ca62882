import { hash, timingSafeEqual } from "node:crypto";
import { benchToken } from "./plants.ts";

const expected = Buffer.from(hash("sha256", benchToken, "hex"), "hex");

/**
 * Returns whether a peer admits a request. As for the plant store's static tokens, the work is a pattern, a SHA-256 and
 * a comparison in constant time.
 */
export function isAdmitted(authorization: string | undefined): boolean {
  const token = /^bearer +([A-Za-z0-9\-._~+/]+=*)$/i.exec(authorization ?? "")?.[1];
  return token !== undefined && timingSafeEqual(Buffer.from(hash("sha256", token, "hex"), "hex"), expected);
}

/** The peers' error messages. */
export const messages = {
  idPattern: "^(0|-?[1-9][0-9]*)$",
  challenge: 'Bearer realm="plantstore"',
  unauthenticated: { error: 16, message: "a bearer token is required" },
  badId: { error: 3, message: "id is not a canonical int64" },
  notFound: (id: bigint) => ({ error: 5, message: `plant ${String(id)} not found` }),
} as const;
