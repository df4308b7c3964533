/** What a schema says of its values beyond types: a rule in CEL, and the limits of a number. */

export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

export interface NumberRule {
  /** The one type of the node, where it is a number's; '' for int-or-string and open types. */
  readonly type: '' | 'integer' | 'number';
  /** A format that limits the range: int32, int64, float, double; '' for none. */
  readonly format: string;
  readonly multipleOf: number | undefined;
  readonly maximum: number | undefined;
  readonly minimum: number | undefined;
  readonly isMaximumExclusive: boolean;
  readonly isMinimumExclusive: boolean;
}
