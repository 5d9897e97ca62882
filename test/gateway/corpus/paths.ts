import type { Row } from "./row.ts";
import { http, invalid, methodNotAllowed, notFound } from "./row.ts";

/** Which RPC a path leads to, and what its variables hold. */
export const pathRows: readonly Row[] = [
  // Templates.
  { rule: `${http}: "*" matches one segment`, request: "GET /v1/wild/a/end", want: { rpc: "Segments", sink: {} } },
  { rule: `${http}: "*" matches one segment`, request: "GET /v1/wild/a/b/end", want: notFound },
  { rule: "an empty segment is no resource", request: "GET /v1/wild//end", want: notFound },
  { rule: "a trailing slash is another path", request: "GET /v1/wild/a/end/", want: notFound },
  { rule: `${http}: "**" matches zero segments`, request: "GET /v1/wilder", want: { rpc: "Segments", sink: {} } },
  { rule: `${http}: "**" matches one segment`, request: "GET /v1/wilder/a", want: { rpc: "Segments", sink: {} } },
  {
    rule: `${http}: "**" matches many segments`,
    request: "GET /v1/wilder/a/b/c/d",
    want: { rpc: "Segments", sink: {} },
  },
  {
    rule: `${http}: a variable of several segments`,
    request: "GET /v1/shelves/1/books/2",
    want: { rpc: "Segments", sink: { fString: "shelves/1/books/2" } },
  },
  {
    rule: `${http}: a variable of several segments keeps %2F`,
    request: "GET /v1/shelves/1%2F2/books/3%2f4",
    want: { rpc: "Segments", sink: { fString: "shelves/1%2F2/books/3%2f4" } },
  },
  {
    rule: `${http}: a variable of several segments decodes all else`,
    request: "GET /v1/shelves/a%20b/books/%25%3A%F0%9F%8C%B1",
    want: { rpc: "Segments", sink: { fString: "shelves/a b/books/%:🌱" } },
  },
  { rule: `${http}: every segment of a variable has to be there`, request: "GET /v1/shelves/1/books", want: notFound },
  { rule: `${http}: every segment of a variable has to be there`, request: "GET /v1/shelves/1/books/", want: notFound },
  { rule: `${http}: a literal inside of a variable`, request: "GET /v1/shelves/1/authors/2", want: notFound },
  { rule: `${http}: {v=**} with zero segments`, request: "GET /v1/files", want: { rpc: "Segments", sink: {} } },
  { rule: `${http}: {v=**} with an empty segment`, request: "GET /v1/files/", want: { rpc: "Segments", sink: {} } },
  {
    rule: `${http}: {v=**} with one segment`,
    request: "GET /v1/files/a",
    want: { rpc: "Segments", sink: { fString: "a" } },
  },
  {
    rule: `${http}: {v=**} with many segments`,
    request: "GET /v1/files/a/b/c.txt",
    want: { rpc: "Segments", sink: { fString: "a/b/c.txt" } },
  },
  {
    rule: `${http}: {v=**} keeps a trailing slash`,
    request: "GET /v1/files/a/",
    want: { rpc: "Segments", sink: { fString: "a/" } },
  },
  {
    rule: `${http}: {v=**} keeps empty segments`,
    request: "GET /v1/files/a//b",
    want: { rpc: "Segments", sink: { fString: "a//b" } },
  },
  {
    rule: `${http}: {v=**} keeps %2F`,
    request: "GET /v1/files/a%2Fb/c",
    want: { rpc: "Segments", sink: { fString: "a%2Fb/c" } },
  },
  {
    rule: "an escape is decoded once",
    request: "GET /v1/files/50%25",
    want: { rpc: "Segments", sink: { fString: "50%" } },
  },
  {
    rule: "an escape is decoded once",
    request: "GET /v1/files/100%2525",
    want: { rpc: "Segments", sink: { fString: "100%25" } },
  },
  {
    rule: "an escape is decoded once",
    request: "GET /v1/files/%252e%252e",
    want: { rpc: "Segments", sink: { fString: "%2e%2e" } },
  },
  {
    rule: `${http}: a nested field in the path`,
    request: "GET /v1/trees/oak/1",
    want: { rpc: "Segments", sink: { nested: { text: "trees/oak/1" } } },
  },
  {
    rule: `${http}: two variables`,
    request: "GET /v1/pairs/a/b",
    want: { rpc: "Segments", sink: { fString: "a", nested: { text: "b" } } },
  },
  {
    rule: `${http}: a variable that is one literal`,
    request: "GET /v1/fixed/only",
    want: { rpc: "Segments", sink: { fString: "only" } },
  },
  { rule: `${http}: a variable that is one literal`, request: "GET /v1/fixed/other", want: notFound },
  { rule: `${http}: the root`, request: "GET /", want: { rpc: "Root", sink: {} } },
  { rule: "the root is one path", request: "GET //", want: notFound },
  // Escapes, RFC 3986 §2.1 and §6.2.2.
  {
    rule: "RFC 3986 §6.2.2.2: literals compare after decoding",
    request: "GET /%76%31/wild/a/%65nd",
    want: { rpc: "Segments", sink: {} },
  },
  {
    rule: "RFC 3986 §6.2.2.2: literals of templates are decoded too",
    request: "GET /v1/escaped/a%2Fb/x",
    want: { rpc: "Segments", sink: { fString: "x" } },
  },
  {
    rule: "RFC 3986 §6.2.2.1: the case of an escape means nothing",
    request: "GET /v1/escaped/a%2fb/x",
    want: { rpc: "Segments", sink: { fString: "x" } },
  },
  { rule: "RFC 3986 §2.2: an escaped slash separates nothing", request: "GET /v1/escaped/a/b/x", want: notFound },
  { rule: "RFC 3986 §2.2: an escaped slash separates nothing", request: "GET /v1%2Fwild%2Fa%2Fend", want: notFound },
  { rule: "RFC 3986 §2.1: a cut escape", request: "GET /v1/string/%", want: invalid("has a bad percent escape") },
  { rule: "RFC 3986 §2.1: a cut escape", request: "GET /v1/string/a%2", want: invalid("has a bad percent escape") },
  {
    rule: "RFC 3986 §2.1: an escape that is not hexadecimal",
    request: "GET /v1/string/%zz",
    want: invalid("has a bad percent escape"),
  },
  {
    rule: "RFC 3986 §2.1: an escape that is not hexadecimal",
    request: "GET /v1/string/%u0041",
    want: invalid("has a bad percent escape"),
  },
  {
    rule: "RFC 3629 §3: not UTF-8",
    request: "GET /v1/string/%ff",
    want: invalid("the path is not UTF-8"),
  },
  {
    rule: "RFC 3629 §3: a cut sequence",
    request: "GET /v1/string/%c3",
    want: invalid("the path is not UTF-8"),
  },
  {
    rule: "RFC 3629 §3: a sequence split by a slash",
    request: "GET /v1/files/%c3/%a9",
    want: invalid("the path is not UTF-8"),
  },
  {
    rule: "RFC 3629 §3: overlong",
    request: "GET /v1/string/%c0%af",
    want: invalid("the path is not UTF-8"),
  },
  {
    rule: "RFC 3629 §3: a surrogate",
    request: "GET /v1/string/%ed%a0%80",
    want: invalid("the path is not UTF-8"),
  },
  {
    rule: "RFC 3629 §3: beyond Unicode",
    request: "GET /v1/string/%f4%90%80%80",
    want: invalid("the path is not UTF-8"),
  },
  { rule: "RFC 3986 §3.3: a path is case-sensitive", request: "GET /V1/wild/a/end", want: notFound },
  { rule: "RFC 3986 §3.3: a path parameter is part of its segment", request: "GET /v1/wild/a/end;x=1", want: notFound },
  { rule: "RFC 3986 §3.3: two slashes are not one", request: "GET /v1//wild/a/end", want: notFound },
  { rule: "RFC 3986 §3.3: two slashes are not one", request: "GET //v1/wild/a/end", want: notFound },
  // Dot segments.
  { rule: 'RFC 3986 §6.2.2.3: "." is the client\'s to remove', request: "GET /v1/./query", want: notFound },
  { rule: 'RFC 3986 §6.2.2.3: ".." is the client\'s to remove', request: "GET /v1/x/../query", want: notFound },
  { rule: 'RFC 3986 §6.2.2.3: an escaped ".." is one', request: "GET /v1/x/%2e%2e/query", want: notFound },
  { rule: 'RFC 3986 §6.2.2.3: an escaped "." is one', request: "GET /v1/%2E/query", want: notFound },
  { rule: 'RFC 3986 §6.2.2.3: a half-escaped ".." is one', request: "GET /v1/files/.%2e/secret", want: notFound },
  { rule: "a dot segment never reaches a variable", request: "GET /v1/files/../secret", want: notFound },
  { rule: "a dot segment never reaches a variable", request: "GET /v1/files/a/..", want: notFound },
  { rule: "a dot segment never reaches a variable", request: "GET /v1/string/..", want: notFound },
  { rule: "a dot segment never reaches a variable", request: "GET /v1/string/.", want: notFound },
  {
    rule: "a segment that only starts with dots is one like others",
    request: "GET /v1/files/..a/.b",
    want: { rpc: "Segments", sink: { fString: "..a/.b" } },
  },
  {
    rule: "an escaped slash makes no dot segment",
    request: "GET /v1/files/..%2Fsecret",
    want: { rpc: "Segments", sink: { fString: "..%2Fsecret" } },
  },
  // Which of several routes.
  { rule: "a literal beats *", request: "GET /v1/match/me", want: { rpc: "MatchLiteral", sink: {} } },
  {
    rule: "a literal beats *, also when escaped",
    request: "GET /v1/match/m%65",
    want: { rpc: "MatchLiteral", sink: {} },
  },
  { rule: "* beats **", request: "GET /v1/match/you", want: { rpc: "MatchOne", sink: { fString: "you" } } },
  {
    rule: "* is case-sensitive like the literal beside it",
    request: "GET /v1/match/ME",
    want: { rpc: "MatchOne", sink: { fString: "ME" } },
  },
  {
    rule: "** takes what is left",
    request: "GET /v1/match/you/and/me",
    want: { rpc: "MatchRest", sink: { fString: "you/and/me" } },
  },
  { rule: "** takes zero segments", request: "GET /v1/match", want: { rpc: "MatchRest", sink: {} } },
  {
    rule: "** takes what * does not: an empty segment",
    request: "GET /v1/match/",
    want: { rpc: "MatchRest", sink: {} },
  },
  {
    rule: "the search goes back from a literal",
    request: "GET /v1/match/me/x/y",
    want: { rpc: "MatchOne", sink: { fString: "me", nested: { text: "y" } } },
  },
  {
    rule: "the search goes back from a literal",
    request: "GET /v1/match/me/y/x",
    want: { rpc: "MatchRest", sink: { fString: "me/y/x" } },
  },
  { rule: "the longest literal path wins", request: "GET /v1/match/me/y/z", want: { rpc: "MatchLiteral", sink: {} } },
  {
    rule: "the method takes part in the search",
    request: "DELETE /v1/match/me",
    want: { rpc: "MatchOne", sink: { fString: "me" } },
  },
  { rule: "the method takes part in the search", request: "DELETE /v1/match/a/b", want: methodNotAllowed("GET, HEAD") },
  // Verbs.
  {
    rule: `${http}: a verb`,
    request: "POST /v1/verbs/a:close",
    body: "{}",
    want: { rpc: "Close", sink: { fString: "a" } },
  },
  {
    rule: `${http}: a verb of another method`,
    request: "GET /v1/verbs/a:peek",
    want: { rpc: "Close", sink: { fString: "a" } },
  },
  { rule: `${http}: a verb behind a literal`, request: "GET /v1/verbs:count", want: { rpc: "Close", sink: {} } },
  {
    rule: `${http}: a verb behind **`,
    request: "GET /v1/archive/a/b:list",
    want: { rpc: "Close", sink: { fString: "a/b" } },
  },
  {
    rule: `${http}: a verb behind ** that matches nothing`,
    request: "GET /v1/archive:list",
    want: { rpc: "Close", sink: {} },
  },
  {
    rule: `${http}: a verb behind ** that matches nothing, or one empty segment`,
    request: "GET /v1/archive/:list",
    want: { rpc: "Close", sink: {} },
  },
  {
    rule: "a verb is the text behind the last colon",
    request: "GET /v1/verbs/a:b:peek",
    want: { rpc: "Close", sink: { fString: "a:b" } },
  },
  {
    rule: "a colon is a verb only where one is declared",
    request: "GET /v1/verbs/a:b",
    want: { rpc: "Plain", sink: { fString: "a:b" } },
  },
  {
    rule: "a colon is a verb only where one is declared",
    request: "GET /v1/string/a:peek",
    want: { rpc: "Types", sink: { fString: "a:peek" } },
  },
  {
    rule: "a colon is a verb only for the method that declares it",
    request: "GET /v1/verbs/a:close",
    want: { rpc: "Plain", sink: { fString: "a:close" } },
  },
  {
    rule: "a verb is case-sensitive",
    request: "GET /v1/verbs/a:PEEK",
    want: { rpc: "Plain", sink: { fString: "a:PEEK" } },
  },
  {
    rule: "RFC 3986 §2.2: an escaped colon is data",
    request: "GET /v1/verbs/a%3Apeek",
    want: { rpc: "Plain", sink: { fString: "a:peek" } },
  },
  {
    rule: "RFC 3986 §6.2.2.2: a verb compares after decoding",
    request: "GET /v1/verbs/a:%70eek",
    want: { rpc: "Close", sink: { fString: "a" } },
  },
  { rule: "a verb needs a value before it", request: "POST /v1/verbs/:close", want: notFound },
  { rule: "a verb needs a value before it", request: "GET /v1/verbs/:peek", want: notFound },
  { rule: "a verb needs a value before it", request: "GET /v1/verbs/:close", want: notFound },
  { rule: "a verb needs a value before it", request: "GET /v1/verbs/:cl%6Fse", want: notFound },
  {
    rule: "a colon is a verb only where one is declared",
    request: "GET /v1/verbs/:count",
    want: { rpc: "Plain", sink: { fString: ":count" } },
  },
  {
    rule: "a colon is a verb only where one is declared",
    request: "GET /v1/string/:close",
    want: { rpc: "Types", sink: { fString: ":close" } },
  },
  {
    rule: "a colon in the middle is data",
    request: "GET /v1/files/a:list/b",
    want: { rpc: "Segments", sink: { fString: "a:list/b" } },
  },
  { rule: "a colon at the end is data", request: "GET /v1/verbs/a:", want: { rpc: "Plain", sink: { fString: "a:" } } },
  // Methods.
  {
    rule: "RFC 9110 §15.5.6: a 405 carries Allow, sorted",
    request: "DELETE /v1/query",
    want: methodNotAllowed("GET, HEAD"),
  },
  {
    rule: "RFC 9110 §15.5.6: a 405 carries Allow, sorted",
    request: "GET /v1/sinks/7",
    want: methodNotAllowed("DELETE, PUT"),
  },
  {
    rule: "RFC 9110 §15.5.6: a 405 carries Allow, sorted",
    request: "PATCH /v1/verbs/a:close",
    want: methodNotAllowed("GET, HEAD, POST"),
  },
  {
    rule: "RFC 9110 §9.1: a method is case-sensitive",
    request: "get /v1/query",
    only: "HTTP/2",
    want: methodNotAllowed("GET, HEAD"),
  },
  {
    rule: "RFC 9110 §9.3.7: OPTIONS is a method like others without CORS",
    request: "OPTIONS /v1/query",
    want: methodNotAllowed("GET, HEAD"),
  },
  { rule: "a method that nobody declares", request: "REPORT /v1/query", want: methodNotAllowed("GET, HEAD") },
  { rule: `${http}: a custom kind`, request: "PROPFIND /v1/custom/a", want: { rpc: "Custom", sink: { fString: "a" } } },
  {
    rule: `${http}: a custom kind is the only method`,
    request: "GET /v1/custom/a",
    want: methodNotAllowed("HEAD, PROPFIND"),
  },
  {
    rule: `${http}: the custom kind * is every method`,
    request: "GET /v1/any/a",
    want: { rpc: "Any", sink: { fString: "a" } },
  },
  {
    rule: `${http}: the custom kind * is every method`,
    request: "DELETE /v1/any/a",
    want: { rpc: "Any", sink: { fString: "a" } },
  },
  {
    rule: `${http}: the custom kind * is every method`,
    request: "REPORT /v1/any/a",
    want: { rpc: "Any", sink: { fString: "a" } },
  },
  {
    rule: "no method override",
    request: "POST /v1/query",
    header: [["x-http-method-override", "GET"]],
    want: methodNotAllowed("GET, HEAD"),
  },
  {
    rule: "no method override",
    request: "POST /v1/sinks/7",
    header: [
      ["x-http-method-override", "DELETE"],
      ["content-type", "application/x-www-form-urlencoded"],
    ],
    want: methodNotAllowed("DELETE, PUT"),
  },
  { rule: "a path that is nowhere", request: "GET /v2/query", want: notFound },
  {
    rule: "an RPC without a rule has no REST path",
    request: "GET /kitchensink.v1.KitchenSink/Nothing",
    want: notFound,
  },
];
