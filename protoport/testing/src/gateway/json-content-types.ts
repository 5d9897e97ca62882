/** Spellings for JSON's content type that REST and RPC accept (RFC 9110 §5.6.6, §8.3.1; RFC 8259 §8.1, §11). */
// oxfmt-ignore
export const jsonContentTypes: readonly string[] = [
  "application/json", "Application/JSON", "application/json;", "application/json ;", "application/json; ;\t;",
  "application/json; charset=utf-8", "application/json;charset=UTF-8", "application/json ; charset=utf-8",
  "application/json;  charset=utf-8", "application/json\t;\tcharset=utf-8", "application/json; Charset=utf-8",
  "application/json; charset=utf8", 'application/json; charset="utf-8"', String.raw`application/json; charset="\utf-8"`,
  "application/json; charset=utf-8;", "application/json; charset=utf-8; charset=UTF8", "application/json; version=1",
  'application/json; charset=utf-8; note="a;b\\"c"',
];

/** Content types that name JSON, but are malformed or have a charset that JSON does not allow (RFC 8259 §8.1). */
// oxfmt-ignore
export const notJsonContentTypes: readonly string[] = [
  "application/json; charset=utf-16", "application/json; charset=latin1", "application/json; charset=utf-8x",
  "application/json; charset=utf--8", "application/json; charset=", "application/json; charset",
  "application/json; charset =utf-8", "application/json; charset= utf-8", 'application/json; charset="utf-8',
  'application/json; charset="', "application/json; charset=utf-8; charset=latin1", "application/json charset=utf-8",
  "application/json, application/json", "application/jsonp",
];
