import { element, find } from "./element.js";

/**
 * @typedef {import("./description.js").Description} Description
 * @typedef {{
 *   baseUrl: () => string, token: () => string, needsToken: boolean, onChange: (listener: () => void) => void,
 * }} Connection the server that requests are sent to, and the token that goes with them, or ""
 */

// The page is at <base URL>/docs. Its own server comes first, whatever `servers` says: behind a forwarded port, it is
// the one that can be reached.
const ownUrl = withoutSlash(new URL(".", location.href).href);

/**
 * Shows the choice of the server and the form for the token. Each server has a token of its own, which is kept for this
 * tab and sent nowhere else.
 *
 * @param {Description} description
 * @returns {Connection}
 */
export function showConnection(description) {
  /** @type {(() => void)[]} */
  const listeners = [];
  const tell = () => listeners.forEach((listener) => listener());
  const needsToken = (description.security ?? []).length > 0;
  const baseUrl = showServers(serversOf(description), tell);
  const token = () => sessionStorage.getItem(tokenKey(baseUrl())) ?? "";
  const connection = {
    baseUrl,
    token,
    needsToken,
    onChange: (/** @type {() => void} */ it) => void listeners.push(it),
  };
  if (needsToken) showCredential(connection, tell);
  find("connection", HTMLElement).hidden = false;
  return connection;
}

/** @param {string} server */
function tokenKey(server) {
  return `bearer token of ${server}`;
}

/**
 * @param {Description} description
 * @returns {Map<string, string>} the description of each server, by its URL
 */
function serversOf({ servers = [] }) {
  const described = servers.map(({ url, description = "" }) => {
    const { href } = new URL(url, new URL("openapi.json", location.href));
    return /** @type {const} */ ([withoutSlash(href), description]);
  });
  const isOwn = described.find(([url]) => url === ownUrl);
  return new Map([[ownUrl, isOwn?.[1] || "this server"], ...described]);
}

/**
 * @param {Map<string, string>} servers
 * @param {() => void} tell
 * @returns {() => string}
 */
function showServers(servers, tell) {
  const options = [...servers].map(([url, about]) =>
    element("option", { value: url }, [about === "" ? url : `${url} (${about})`]),
  );
  const select = find("server", HTMLSelectElement);
  select.replaceChildren(...options);
  select.value = ownUrl;
  select.addEventListener("change", tell);
  find("servers", HTMLElement).hidden = servers.size < 2;
  return () => select.value;
}

/**
 * @param {Connection} connection
 * @param {() => void} tell
 */
function showCredential(connection, tell) {
  const form = find("credential", HTMLFormElement);
  const input = find("token", HTMLInputElement);
  const forget = find("forget", HTMLButtonElement);
  const note = find("token-note", HTMLElement);
  const say = (/** @type {string} */ text) => {
    forget.hidden = connection.token() === "";
    form.classList.toggle("authorized", !forget.hidden);
    note.textContent = text;
    tell();
  };
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    // The whole line that the server prints may have been pasted.
    const token = input.value.trim().replace(/^(?:authorization:\s*)?bearer\s+/i, "");
    input.value = "";
    if (token === "") return say("Nothing was entered, so nothing has changed. Paste a token first.");
    sessionStorage.setItem(tokenKey(connection.baseUrl()), token);
    return say(`Authorized: ${describeToken(connection)} The first answer tells whether the server accepts it.`);
  });
  forget.addEventListener("click", () => {
    sessionStorage.removeItem(tokenKey(connection.baseUrl()));
    say("Forgotten: requests go without a token now.");
    input.focus();
  });
  find("server", HTMLSelectElement).addEventListener("change", () => say(describeToken(connection)));
  form.hidden = false;
  say(describeToken(connection));
}

// The shortest token whose end is shown: the end of a shorter one would say too much.
const lengthToShowEnd = 16;

/** @param {Connection} connection */
function describeToken({ token, baseUrl }) {
  const text = token();
  if (text === "") return "No token yet. It will go with the requests of this page, and nowhere else.";
  const which = text.length < lengthToShowEnd ? "a token" : `the token that ends in ${text.slice(-4)}`;
  return `${which} goes with every request to ${baseUrl()}, until this tab is closed.`;
}

/** @param {string} url */
function withoutSlash(url) {
  return url.replace(/\/$/, "");
}
