import { StoreOpenError } from "../../contract/store-open-error.ts";
import { parseUrl } from "./parse-url.ts";
import { readServerUrl, type Server } from "./server-url.ts";

/**
 * Returns the server for a URL whose user and password may change while the store is open.
 *
 * @param currentUrl - returns the current URL, for each connection. {@link assertSameDatabase} must accept the URL
 * @throws StoreOpenError if the URL cannot be used
 */
export function followServerUrl(url: string, currentUrl: () => string): Server {
  const server = readServerUrl(url);
  return {
    ...server,
    get hosts() {
      return readServerUrl(currentUrl(), server.certificates).hosts;
    },
  };
}

/** @throws StoreOpenError if a new URL, perhaps written incompletely, differs in more than user and password */
export function assertSameDatabase(url: string, renewed: string): void {
  if (targetOf(renewed) !== targetOf(url))
    throw new StoreOpenError("the new URL must differ only in user and password");
}

function targetOf(url: string): string {
  const { user, password: _, dbname, ...others } = Object.fromEntries(parseUrl(url));
  // If the URL names no database, the database has the user's name.
  return JSON.stringify({ ...others, dbname: dbname || user });
}
