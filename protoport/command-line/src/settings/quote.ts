import { toShortLine } from "@protoport/gateway/errors";

/** Quotes text for a message. Long text is shortened, and users and passwords are removed from URLs. */
export function quote(given: string): string {
  return JSON.stringify(toShortLine(withoutPassword(given)));
}

/** Removes users and passwords from the URLs in a text. */
export function withoutPassword(given: string): string {
  return given.replaceAll(/\/\/[^/?#\s]*@/g, "//…@");
}
