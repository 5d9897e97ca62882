import { type Description, needsCredential, type OperationObject, operationsOf } from "./description.js";
import { element, find } from "./element.js";

/** The server to which requests are sent, and the token in these requests ("" for no token). */
export interface Connection {
  readonly baseUrl: () => string;
  readonly token: () => string;
  readonly needsToken: (operation: OperationObject) => boolean;
  /** Adds a listener that is called when another server is selected. */
  readonly onChange: (listener: () => void) => void;
}

// The page is at <base URL>/docs. The page's server is the first choice, even if `servers` does not contain this
// server. Behind a forwarded port, only this server can be reached.
const ownUrl = withoutSlash(new URL(".", location.href).href);

/** Minimum length of a token whose last four characters are shown, because they reveal too much of shorter tokens. */
const lengthToShowEnd = 16;

/**
 * Shows the server selection and the token form. Each server has a separate token. The token is kept for the current
 * tab, and sent only to its server.
 */
export function showConnection(description: Description): Connection {
  const server = showServers(description);
  const connection: Connection = {
    baseUrl: () => server.value,
    token: () => sessionStorage.getItem(tokenKey(server.value)) ?? "",
    needsToken: (operation) => needsCredential(description, operation),
    onChange: (listener) => server.addEventListener("change", listener),
  };
  if (operationsOf(description).some(({ object }) => connection.needsToken(object))) showCredential(connection);
  find("connection", HTMLElement).hidden = false;
  return connection;
}

function tokenKey(server: string): string {
  return `bearer token of ${server}`;
}

function showServers({ servers = [] }: Description): HTMLSelectElement {
  const serverDescriptions = new Map([[ownUrl, "this server"]]);
  for (const { url, description } of servers) {
    const { href } = new URL(url, new URL("openapi.json", location.href));
    serverDescriptions.set(withoutSlash(href), description || serverDescriptions.get(withoutSlash(href)) || "");
  }
  const options = [...serverDescriptions].map(([url, text]) =>
    element("option", { value: url }, text === "" ? url : `${url} (${text})`),
  );
  const select = find("server", HTMLSelectElement);
  select.replaceChildren(...options);
  find("servers", HTMLElement).hidden = serverDescriptions.size < 2;
  return select;
}

function showCredential(connection: Connection): void {
  const form = find("credential", HTMLFormElement);
  const input = find("token", HTMLInputElement);
  const forget = find("forget", HTMLButtonElement);
  const status = find("token-note", HTMLElement);
  const showStatus = (text: string): void => {
    forget.hidden = connection.token() === "";
    status.textContent = text;
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // The user may have pasted a complete `Authorization: Bearer` line, as the server prints.
    const token = input.value.trim().replace(/^(?:authorization:\s*)?bearer\s+/i, "");
    input.value = "";
    if (token === "") return showStatus("No token entered. Paste a token first.");
    sessionStorage.setItem(tokenKey(connection.baseUrl()), token);
    return showStatus(
      `Authorized: ${describeToken(connection)} The first response shows whether the server accepts it.`,
    );
  });
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(tokenKey(connection.baseUrl()));
    showStatus("Token removed. Requests are now sent without a token.");
    input.focus();
  });
  connection.onChange(() => showStatus(describeToken(connection)));
  form.hidden = false;
  showStatus(describeToken(connection));
}

function describeToken({ token, baseUrl }: Connection): string {
  const text = token();
  if (text === "") return "No token yet. It is sent only with the requests of this page.";
  const tokenText = text.length < lengthToShowEnd ? "a token" : `the token ending in ${text.slice(-4)}`;
  return `${tokenText} is sent with every request to ${baseUrl()} until this tab is closed.`;
}

function withoutSlash(url: string): string {
  return url.replace(/\/$/, "");
}
