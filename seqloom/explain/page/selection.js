/* Which hypothesis is shown, and which of its tokens. Views add functions that draw again when that changes. */
export class Selection {
  hypothesis = 0;
  token = 0;
  onHypothesis = [];
  onToken = [];

  constructor(hypotheses) {
    this.hypotheses = hypotheses;
  }

  get current() {
    return this.hypotheses[this.hypothesis];
  }

  /* Another hypothesis, at the token that the model was least sure of. */
  chooseHypothesis(index) {
    this.hypothesis = index;
    const logProbs = this.current.log_probs.map((value) => value ?? -Infinity);
    this.token = Math.max(logProbs.indexOf(Math.min(...logProbs)), 0);
    this.onHypothesis.forEach((paint) => paint());
  }

  chooseToken(index) {
    this.token = index;
    this.onToken.forEach((mark) => mark());
  }
}
