import type { Call } from "../src/files/shell-commands.ts";

/** Returns a call of `/shop.v1.Shop/Get` with some parts replaced. */
export function callOf(changes: Partial<Call>): Call {
  // oxfmt-ignore
  return { request: { method: "POST", url: "http://127.0.0.1:1/a", headers: [], body: undefined }, needsToken: false,
    isStream: false, baseUrl: "http://127.0.0.1:8080", procedure: "/shop.v1.Shop/Get", messages: ["{}"], ...changes };
}
