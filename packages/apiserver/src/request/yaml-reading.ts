/** What a body in YAML says, and who sent it. */

/** A document of a request: as JSON, with what strict decoding tells of its keys. */
export type YamlReading =
  | {
      readonly json: Uint8Array;
      /** `line 4: key "a" already set in map` for each key that a mapping has again. */
      readonly doubles: readonly string[];
    }
  | { readonly error: string };
