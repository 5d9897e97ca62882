/** The direction in which a message is sent, and an example request such as `GET /v1/{id}`. */
export interface Usage {
  readonly direction: "request" | "response";
  readonly request: string;
}
