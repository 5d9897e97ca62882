import { StoreOpenError } from "../../store-open-error.ts";
import { parseUrl } from "./parse-url.ts";
import { readServerUrl, type Server } from "./server-url.ts";

/**
 * Returns the server of a URL whose user and password may change while it is used. While a file that the URL names is
 * missing, the server stays as it was last read.
 *
 * @param currentUrl - returns the URL as it is now, one that {@link demandSameDatabase} has let through; called for each
 * connection
 * @throws StoreOpenError when the URL cannot be used
 */
export function followServerUrl(url: string, currentUrl: () => string): Server {
  const { hosts: first, ...server } = readServerUrl(url);
  let hosts = first;
  return {
    ...server,
    get hosts() {
      try {
        ({ hosts } = readServerUrl(currentUrl()));
      } catch (fault) {
        if (!(fault instanceof StoreOpenError)) throw fault;
      }
      return hosts;
    },
  };
}

/**
 * Checks that a renewed URL differs in user and password alone from one that can be used: the beginning of a
 * half-written URL may be the URL of another database.
 *
 * @throws StoreOpenError when it differs in anything else
 */
export function demandSameDatabase(url: string, renewed: string): void {
  if (targetOf(renewed) !== targetOf(url)) throw new StoreOpenError("the new URL must differ only in user and password");
}

/** Returns everything in a URL except user and password, as a text to compare. */
function targetOf(url: string): string {
  const { user, password: _, dbname, ...others } = Object.fromEntries(parseUrl(url));
  // A database that is not named has the name of the user.
  return JSON.stringify({ ...others, dbname: dbname || user });
}
