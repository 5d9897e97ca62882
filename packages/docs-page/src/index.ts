/**
 * How does a person read a description and try it? The endpoints of an OpenAPI document and of a page about it, for any
 * document: the entry `@plantstore/docs-page`.
 */
export { createDocsPage, type DocsPageOptions } from "./docs-page.ts";
