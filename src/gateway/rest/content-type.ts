// RFC 9110 §8.3.1, without the parameters: type "/" subtype, each a token.
const json = /^(?:application\/json|[!#$%&'*+\-.^_`|~0-9a-z]+\/[!#$%&'*+\-.^_`|~0-9a-z]+\+json)$/;
// One parameter. RFC 8259 §8.1: JSON is UTF-8, so a charset may only say what is true anyway.
const charset = /^charset=(?:utf-8|"utf-8")$/;

/**
 * Whether a body with this content type may be read as JSON: `application/json` or a `+json` type
 * (RFC 6839 §3.1), with no other charset than UTF-8, or no content type at all.
 *
 * @param contentType - the header's value, `null` when the request has none
 */
export function isJsonContentType(contentType: string | null): boolean {
  if (contentType === null || contentType === "application/json") return true;
  const [type = "", ...parameters] = contentType.toLowerCase().split(";");
  if (!json.test(type.trim())) return false;
  // Parameters other than charset mean nothing to JSON and are ignored (RFC 8259 §11).
  return parameters.every((parameter) => {
    const text = parameter.trim();
    return !text.startsWith("charset") || charset.test(text);
  });
}
