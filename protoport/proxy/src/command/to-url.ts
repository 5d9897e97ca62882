/** Returns a listening server's URL, with an IPv6 address in brackets (RFC 3986 §3.2.2). */
export function toUrl(
  scheme: "http" | "https",
  { address, port }: { readonly address: string; readonly port: number },
): string {
  return `${scheme}://${address.includes(":") ? `[${address}]` : address}:${port}`;
}
