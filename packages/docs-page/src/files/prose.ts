// Descriptions are CommonMark. It is read by marked, whose tokens become elements here: no HTML is ever parsed, so text
// that looks like it is shown as it is.
import { Lexer, type MarkedToken, type Token, type Tokens } from "marked";
import type { Description } from "./description.js";
import { element, terminal } from "./element.js";
import { linkToName } from "./names.js";

/**
 * Shows CommonMark with tables, and with links of bare URLs as comments often have them. Names of the definition, as in
 * `[Shelf][library.v1.Shelf]`, link to their views.
 */
export function prose(description: Description, text: string | undefined): HTMLElement[] {
  if (text === undefined || text === "") return [];
  const lexer = new Lexer({ gfm: true });
  // As the comments of Google's definitions refer to names: the name itself is no text to show.
  for (const [, name = ""] of text.matchAll(/\]\[([A-Za-z_][\w.]*)\]/g)) {
    lexer.tokens.links[name.toLowerCase()] = { href: linkToName(description, name) ?? "", title: null };
  }
  return ownTokens(lexer.lex(text)).flatMap(showBlock);
}

/** Types tokens as marked's own: those of extensions, of which there are none, could be anything. */
function ownTokens(tokens: readonly Token[]): MarkedToken[] {
  return tokens.filter((token): token is MarkedToken => token.type !== "");
}

function showBlock(token: MarkedToken): HTMLElement[] {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "code":
      return [terminal(token.text)];
    case "hr":
      return [element("hr")];
    case "blockquote":
      return [element("blockquote", {}, ...ownTokens(token.tokens).flatMap(showBlock))];
    case "list":
      return [showList(token)];
    case "table":
      return [showTable(token)];
    // The headings of the page are its own.
    case "heading":
      return [element("p", {}, element("strong", {}, ...showInline(token.tokens)))];
    case "paragraph":
      return [element("p", {}, ...showInline(token.tokens))];
    default:
      return [element("p", {}, ...showInline([token]))];
  }
}

function showList({ ordered, start, items, loose }: Tokens.List): HTMLElement {
  const shown = items.map(({ tokens }) =>
    element(
      "li",
      {},
      ...ownTokens(tokens).flatMap((token) =>
        loose || token.type !== "text" ? showBlock(token) : showInline([token]),
      ),
    ),
  );
  return ordered ? element("ol", { start: String(start) }, ...shown) : element("ul", {}, ...shown);
}

function showTable({ header, rows }: Tokens.Table): HTMLElement {
  const row = (name: "th" | "td", cells: readonly Tokens.TableCell[]): HTMLElement =>
    element("tr", {}, ...cells.map(({ tokens }) => element(name, {}, ...showInline(tokens))));
  const table = element("table", {}, row("th", header), ...rows.map((cells) => row("td", cells)));
  return element("div", { class: "wide", tabindex: "0" }, table);
}

function showInline(tokens: readonly Token[]): (Node | string)[] {
  return ownTokens(tokens).flatMap((token): (Node | string)[] => {
    switch (token.type) {
      case "codespan":
        return [element("code", {}, token.text)];
      case "strong":
      case "em":
      case "del":
        return [element(token.type, {}, ...showInline(token.tokens))];
      case "br":
        return [element("br")];
      case "link":
        return showLink(token.href, showInline(token.tokens));
      // Nothing is loaded from elsewhere.
      case "image":
        return showLink(token.href, [token.text]);
      case "escape":
        return [token.text];
      case "text":
        return token.tokens === undefined ? [withoutEntities(token.text)] : showInline(token.tokens);
      default:
        return [token.raw];
    }
  });
}

/** Shows a link, or just its text if it would lead to something that a browser runs, or to nothing. */
function showLink(target: string, text: readonly (Node | string)[]): (Node | string)[] {
  const href = withoutEntities(target);
  const isHere = href.startsWith("/") || href.startsWith("#/");
  const isSafe = isHere || (URL.canParse(href) && protocols.has(new URL(href).protocol));
  return isSafe ? [element("a", { href, rel: "noreferrer" }, ...text)] : [...text];
}

const protocols: ReadonlySet<string> = new Set(["http:", "https:", "mailto:"]);

/** Replaces entities by their characters: the numeric ones, and those by name that texts about HTML need. */
function withoutEntities(text: string): string {
  return text.replaceAll(
    /&(?:#(\d{1,7})|#[xX]([0-9a-fA-F]{1,6})|(amp|lt|gt|quot|nbsp));/g,
    (whole, decimal, hex, name) => {
      if (name !== undefined) return entities[String(name)] ?? whole;
      const codePoint = decimal === undefined ? Number.parseInt(hex, 16) : Number(decimal);
      return codePoint > 0 && codePoint <= 0x10ffff ? String.fromCodePoint(codePoint) : "\u{fffd}";
    },
  );
}

const entities: Readonly<Record<string, string>> = { amp: "&", lt: "<", gt: ">", quot: '"', nbsp: "\u{a0}" };
