"""A stand-in for CocoaPods' own words: a program in Ruby that prints what a podspec says, as JSON."""

from typing import Final

PODS: Final = """
require 'json'
class Spec
  attr_reader :said
  def initialize; @said = {dependencies: []}; end
  def dependency(*words); @said[:dependencies] << words; end
  def method_missing(name, value = nil); @said[name.to_s.chomp('=')] ||= value; end
end
module Pod
  module Spec
    def self.new; spec = ::Spec.new; yield spec; puts spec.said.to_json; end
  end
end
load ARGV[0]
"""
